"""Building with an installed CANN, and running on its devices."""
