// Visibility of the shared package's functions: they are inline here.
#pragma once
#define OPBASE_API
