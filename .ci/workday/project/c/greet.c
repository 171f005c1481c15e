#include <stdio.h>
#include "words.h"
int main(void) { return printf("%s %s\n", hello(), name()) < 0; }
