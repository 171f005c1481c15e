import day_words


def greeting(name):
    return "%s %s" % (day_words.HELLO, name)
