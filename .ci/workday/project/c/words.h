const char *hello(void);
const char *name(void);
