#include "words.h"
const char *name(void) { return "day"; }
