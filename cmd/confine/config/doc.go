// Package config finds, layers and watches the settings of confine, and knows
// the folders that confine keeps its own files in.
//
// Every key is one row of a table (keys.go): its type, its default, its meaning,
// and which of its values allow less. Values come in layers, later ones first:
//
//	defaults < user file < environment < command line < managed file
//
// and then from what may only tighten: the editor's options and the file
// .confine/config.toml of each workspace folder. Whoever wrote those is not
// trusted; a line that would allow more is ignored, with a warning.
//
// Reading is strict: a mistake is an error with file and line, never a silent
// default, because a setting that is not what the person thinks it is can open
// what they meant to keep shut.
package config
