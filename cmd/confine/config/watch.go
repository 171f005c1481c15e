package config

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/fsnotify/fsnotify"

	"github.com/confine-dev/confine/sandbox"
)

// watcher tells when what files say may have changed. It watches folders, not
// files: an editor replaces a file by another one.
type watcher struct {
	notify  *fsnotify.Watcher
	changed func()
	poke    chan struct{} // has one element when changed is to be called in any case
	ended   chan struct{} // closed when no call of changed follows

	mu     sync.Mutex // guards places
	places []place
}

// place is a name in a folder that decides what a file says: the file itself, a
// link on the way to it, or a folder on the way that may come and go.
type place struct{ folder, name string }

func newWatcher(changed func()) (*watcher, error) {
	notify, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, err
	}
	w := &watcher{notify: notify, changed: changed, poke: make(chan struct{}, 1), ended: make(chan struct{})}
	go w.loop()
	return w, nil
}

// loop ends when the notifications do. What arrives together is one change, and
// what arrives during changed is another one, so that the last state is seen.
func (w *watcher) loop() {
	defer close(w.ended)
	for {
		matters := false
		select {
		case event, ok := <-w.notify.Events:
			if !ok {
				return
			}
			matters = w.matters(event)
		case _, ok := <-w.notify.Errors:
			if !ok {
				return
			}
			matters = true // events may be lost
		case <-w.poke:
			matters = true
		}
		for more := true; more; {
			select {
			case event, ok := <-w.notify.Events:
				more = ok
				matters = matters || ok && w.matters(event)
			default:
				more = false
			}
		}
		if matters {
			w.changed()
		}
	}
}

// again has changed called though nothing has happened.
func (w *watcher) again() {
	select {
	case w.poke <- struct{}{}:
	default:
	}
}

func (w *watcher) matters(event fsnotify.Event) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.ContainsFunc(w.places, func(p place) bool {
		return event.Name == p.folder || event.Name == filepath.Join(p.folder, p.name)
	})
}

// follow watches the places of these files and of no others. moved says that there
// are other places than before; err that one of them cannot be watched.
func (w *watcher) follow(files []string) (moved bool, err error) {
	var places []place
	for _, file := range files {
		for _, step := range sandbox.Way(file) {
			places = append(places, place{step.Folder, step.Name})
		}
	}
	w.mu.Lock()
	before := w.places
	w.places = places
	w.mu.Unlock()
	folders := foldersOf(places)
	for _, folder := range folders {
		// Again each time: the folder of this name may be another one now.
		if addErr := w.notify.Add(folder); addErr != nil && !os.IsNotExist(addErr) && !os.IsPermission(addErr) {
			err = fmt.Errorf("watching %s: %w", folder, addErr)
		}
	}
	for _, folder := range foldersOf(before) {
		if !slices.Contains(folders, folder) {
			w.notify.Remove(folder) // it may be gone
		}
	}
	return !slices.Equal(before, places), err
}

func foldersOf(places []place) []string {
	var folders []string
	for _, p := range places {
		folders = append(folders, p.folder)
	}
	slices.Sort(folders)
	return slices.Compact(folders)
}

// close waits for a call of changed.
func (w *watcher) close() error {
	err := w.notify.Close()
	<-w.ended
	return err
}

// watch begins to watch. It is called with mu held.
func (s *Source) watch() {
	var err error
	if s.watcher, err = newWatcher(s.reload); err != nil {
		s.unwatched = "changes of the settings are not noticed until confine is started again: " + err.Error()
	}
}

// follow watches what the settings come from now. It is called with mu held.
func (s *Source) follow() (moved bool) {
	if s.watcher == nil {
		return false
	}
	var files []string
	for _, file := range []string{s.o.Paths.SettingsFile(), s.o.Paths.ManagedFile} {
		if file != "" {
			files = append(files, file)
		}
	}
	for _, c := range s.connections {
		for _, folder := range c.folders {
			files = append(files, filepath.Join(folder, workspaceFolder, workspaceFile))
		}
	}
	moved, err := s.watcher.follow(files)
	s.unwatched = ""
	if err != nil {
		s.unwatched = "some changes of the settings are not noticed until confine is started again: " + err.Error()
	}
	return moved
}
