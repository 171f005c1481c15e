package config

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/confine-dev/confine/sandbox"
)

// Options say where settings come from. The zero value reads the places that
// FindPaths names.
type Options struct {
	Paths  Paths               // the zero value: FindPaths()
	Getenv func(string) string // nil: os.Getenv

	// Named are settings of the command line, by key.
	Named map[string]any

	// TrustEditor lets the editor's options widen, too; never over the managed file.
	TrustEditor bool

	// Watch notices changes of the files. Close the source.
	Watch bool
}

// Source has the settings of this process. It is safe for concurrent use.
type Source struct {
	o     Options
	owner int // whom the managed file must belong to

	environment, named layer

	mu            sync.Mutex     // guards what follows, and readings of files
	user, managed file           // the last that could be read; their errors are in errors
	way           []sandbox.Step // to the user's file, when it was read
	errors        []string
	connections   []*Connection
	watcher       *watcher // nil without Options.Watch, or if there is none to be had
	unwatched     string   // why changes are not noticed; empty if they are
}

// Open reads the settings. A file or variable that exists and cannot be read or
// understood is an *Error.
func Open(o Options) (*Source, error) { return openFor(o, 0) }

func openFor(o Options, owner int) (*Source, error) {
	if reflect.ValueOf(o.Paths).IsZero() {
		o.Paths = FindPaths()
	}
	if o.Getenv == nil {
		o.Getenv = os.Getenv
	}
	s := &Source{o: o, owner: owner}
	var err error
	if s.environment.entries, err = parseEnvironment(o.Getenv); err != nil {
		return nil, err
	}
	for i := range Keys { // in their order
		if value, given := o.Named[Keys[i].Name]; given {
			s.named.entries = append(s.named.entries, entry{&Keys[i], value, OriginCommandLine})
		}
	}
	if err := s.begin(); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// begin watches, if that is wanted, and then reads.
func (s *Source) begin() (err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.o.Watch {
		s.watch()
	}
	s.follow()
	s.way = sandbox.Way(s.o.Paths.SettingsFile())
	if s.user.entries, err = readUserFile(s.o.Paths.SettingsFile()); err != nil {
		return err
	}
	s.managed.entries, err = readManagedFile(s.o.Paths.ManagedFile, s.owner)
	return err
}

// Base is the settings without any editor or workspace.
func (s *Source) Base() *Snapshot {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.snapshot(layer{}, nil)
}

// snapshot is called with mu held.
func (s *Source) snapshot(editor layer, workspaces []layer) *Snapshot {
	ordered := []layer{s.user.layer, s.environment, s.named}
	if s.o.TrustEditor {
		ordered = append(ordered, editor)
	}
	// What the command line and a trusted editor want narrower than the managed
	// file holds as well, and what the person hides stays hidden besides what it hides.
	over, adding := s.managed.additions()
	tightening := append([]layer{adding, s.named, editor}, workspaces...)
	snapshot := compose(append(ordered, over), tightening)
	snapshot.Errors = append(snapshot.Errors, s.errors...)
	if s.unwatched != "" {
		snapshot.Warnings = append(snapshot.Warnings, s.unwatched)
	}
	return snapshot
}

// reload reads everything anew and tells the connections for which something is
// different. Of a file that cannot be understood what it said before holds.
func (s *Source) reload() {
	s.mu.Lock()
	var news []*Connection
	for range 8 { // a change of links can mean that other folders are to be watched
		moved := s.follow()
		s.readFiles()
		for _, c := range s.connections {
			if c.read() && !slices.Contains(news, c) {
				news = append(news, c)
			}
		}
		if !moved {
			break
		}
	}
	s.mu.Unlock()
	for _, c := range news {
		c.changed()
	}
}

// readFiles is called with mu held.
func (s *Source) readFiles() {
	s.errors = nil
	keep := func(f *file, entries []entry, err error) {
		if err != nil {
			s.errors = append(s.errors, err.Error()+"; what it said before stays in force")
			return
		}
		s.take(f, layer{entries: entries})
	}
	err := s.unwritten()
	var entries []entry
	if err == nil {
		entries, err = readUserFile(s.o.Paths.SettingsFile())
	}
	keep(&s.user, entries, err)
	entries, err = readManagedFile(s.o.Paths.ManagedFile, s.owner)
	keep(&s.managed, entries, err)
}

// unwritten is an error if the user's file has come to be reached through a folder that
// commands write to: what it says there may be theirs. A folder that is opened when it
// is already so is none that commands write to (sandbox.Forbidden). It is called with
// mu held.
func (s *Source) unwritten() error {
	way := sandbox.Way(s.o.Paths.SettingsFile())
	if slices.Equal(way, s.way) {
		return nil
	}
	for _, c := range s.connections {
		for _, folder := range slices.Concat(c.folders, c.Current().Settings.Writable(s.o.Paths.Home)) {
			folder = sandbox.Canonical(folder)
			if slices.ContainsFunc(way, func(step sandbox.Step) bool { return sandbox.Within(step.Folder, folder) }) {
				return &Error{Path: s.o.Paths.SettingsFile(), Reason: fmt.Sprintf("it is reached through %q now, where commands may write: start confine again", folder)}
			}
		}
	}
	s.way = way
	return nil
}

// file is what a settings file says.
type file struct {
	layer           // without entries, nil, if there is none
	gone  time.Time // since when there is none; until that is believed, layer is what it said
}

// removal is how long a file must be gone until that is believed: programs replace
// a file by moving it away and writing another one.
const removal = 300 * time.Millisecond

// take notes what a file says now. It is called with mu held.
func (s *Source) take(f *file, now layer) {
	switch missing := now.entries == nil && now.err == nil; {
	case !missing, s.watcher == nil, f.entries == nil && f.err == nil:
		*f = file{layer: now}
	case f.gone.IsZero():
		f.gone = time.Now()
		time.AfterFunc(removal, s.watcher.again)
	case time.Since(f.gone) >= removal:
		*f = file{}
	}
}

// Close ends the watching. Connections keep the settings that they have.
func (s *Source) Close() error {
	s.mu.Lock()
	w := s.watcher
	s.watcher = nil
	s.mu.Unlock()
	if w != nil {
		return w.close() // waits for a reload, which needs mu
	}
	return nil
}

// Connection is the settings of one editor and its workspace folders.
type Connection struct {
	source  *Source
	changed func()

	options layer            // guarded by source.mu, as are the others
	folders []string         // absolute
	files   map[string]*file // of each folder

	current atomic.Pointer[Snapshot]
}

// Connect returns the settings for an editor that has said nothing yet. changed is
// called after Current has become different because of a file, never twice at
// once. Close the connection.
func (s *Source) Connect(changed func()) *Connection {
	c := &Connection{source: s, changed: changed, files: map[string]*file{}}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.connections = append(s.connections, c)
	c.read()
	return c
}

// SetOptions takes the editor's initializationOptions. If they cannot be understood
// no command may run: nobody knows what they were to forbid.
func (c *Connection) SetOptions(options json.RawMessage) {
	c.source.mu.Lock()
	defer c.source.mu.Unlock()
	c.options.entries, c.options.err = parseJSON(OriginEditor, options)
	c.read()
}

// SetFolders takes the workspace folders, whose files hold from now on.
func (c *Connection) SetFolders(folders []string) {
	c.source.mu.Lock()
	defer c.source.mu.Unlock()
	c.folders = slices.Clone(folders)
	maps.DeleteFunc(c.files, func(folder string, _ *file) bool { return !slices.Contains(folders, folder) })
	c.source.follow()
	c.read()
}

// Current is the settings in force. It costs nothing.
func (c *Connection) Current() *Snapshot { return c.current.Load() }

// Close ends the calls of changed, if not one that is going on.
func (c *Connection) Close() {
	c.source.mu.Lock()
	defer c.source.mu.Unlock()
	c.source.connections = slices.DeleteFunc(c.source.connections, func(o *Connection) bool { return o == c })
	c.folders = nil
	c.source.follow()
}

// read reads the files of the workspace and reports whether something is different.
// It is called with the source's mu held.
func (c *Connection) read() bool {
	var workspaces []layer
	for _, folder := range c.folders {
		entries, err := readWorkspaceFile(folder)
		f := c.files[folder]
		if f == nil {
			f = &file{}
			c.files[folder] = f
		}
		c.source.take(f, layer{entries, err})
		workspaces = append(workspaces, f.layer)
	}
	now := c.source.snapshot(c.options, workspaces)
	if reflect.DeepEqual(now, c.current.Load()) {
		return false
	}
	c.current.Store(now)
	return true
}
