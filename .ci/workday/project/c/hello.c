#include "words.h"
const char *hello(void) { return "hello"; }
