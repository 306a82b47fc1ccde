"""What a kernel is, as data: typed nodes, element types, and the text form."""
