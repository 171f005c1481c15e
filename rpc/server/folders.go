package server

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/confine-dev/confine/rpc"
	"github.com/confine-dev/confine/rpc/proto"
	"github.com/confine-dev/confine/sandbox"
	"github.com/confine-dev/confine/sandbox/protect"
)

// folders are the workspace folders of the editor and the roots made of them.
type folders struct {
	forbidden sandbox.Forbidden
	finder    protect.Finder

	mu   sync.Mutex // guards what follows
	open []folder   // in the order that the editor gave
	gone []*sandbox.Root

	extra []folder // of the settings; see extras

	pinned []*sandbox.Root // folders outside the roots that git needs; see guarded
}

// folder is one workspace folder: a root, or why it is none.
type folder struct {
	uri     string
	path    string        // empty if the URI names none
	root    *sandbox.Root // nil if refused
	refusal string
}

// declare adds folders. It touches the file system, briefly.
func (f *folders) declare(uris []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, uri := range uris {
		if !slices.ContainsFunc(f.open, func(o folder) bool { return o.uri == uri }) {
			f.open = append(f.open, openFolder(uri, f.forbidden))
		}
	}
}

func openFolder(uri string, forbidden sandbox.Forbidden) folder {
	path, err := filePath(uri)
	if err != nil {
		return folder{uri: uri, refusal: err.Error()}
	}
	root, err := sandbox.DeclareRoot(path, forbidden)
	if errors.Is(err, fs.ErrNotExist) {
		return folder{uri: uri, path: path, refusal: "it does not exist"}
	}
	if err != nil {
		return folder{uri: uri, path: path, refusal: err.Error()}
	}
	return folder{uri: uri, path: path, root: root}
}

// remove closes folders and returns their roots. These stay pinned until the
// connection ends, since runs that began before may still use them.
func (f *folders) remove(uris []string) (removed []*sandbox.Root) {
	return f.drop(&f.open, func(o folder) bool { return slices.ContainsFunc(uris, o.named) })
}

// drop removes the folders of a list that are no more wanted, and returns their roots.
func (f *folders) drop(list *[]folder, unwanted func(folder) bool) (removed []*sandbox.Root) {
	f.mu.Lock()
	defer f.mu.Unlock()
	*list = slices.DeleteFunc(*list, func(o folder) bool {
		if !unwanted(o) {
			return false
		}
		if o.root != nil {
			removed = append(removed, o.root)
		}
		return true
	})
	f.gone = append(f.gone, removed...)
	return removed
}

// named reports whether a URI names the folder, however it is spelled: what
// stays a root by mistake stays writable.
func (o folder) named(uri string) bool {
	if uri == o.uri {
		return true
	}
	path, err := filePath(uri)
	return err == nil && o.path != "" && filepath.Clean(path) == filepath.Clean(o.path)
}

func (f *folders) close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, o := range slices.Concat(f.open, f.extra) {
		if o.root != nil {
			o.root.Close()
		}
	}
	for _, root := range slices.Concat(f.gone, f.pinned) {
		root.Close()
	}
}

// snapshot lists the folders as they are now.
func (f *folders) snapshot() []folder {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.open)
}

// roots lists the roots, each folder once.
func (f *folders) roots() []*sandbox.Root {
	var roots []*sandbox.Root
	for _, o := range f.snapshot() {
		if o.root != nil && !slices.ContainsFunc(roots, func(r *sandbox.Root) bool { return r.Path == o.root.Path }) {
			roots = append(roots, o.root)
		}
	}
	return roots
}

// paths lists where the open folders are, roots or not.
func (f *folders) paths() []string {
	var paths []string
	for _, o := range f.snapshot() {
		switch {
		case o.root != nil:
			paths = append(paths, o.root.Path)
		case o.path != "":
			paths = append(paths, o.path)
		}
	}
	return paths
}

func (f *folders) refusals() []proto.RefusedURI {
	refused := []proto.RefusedURI{}
	for _, o := range f.snapshot() {
		if o.root == nil {
			refused = append(refused, proto.RefusedURI{URI: o.uri, Reason: o.refusal})
		}
	}
	return refused
}

// skipped lists the paths of folders that are not roots.
func (f *folders) skipped() []string {
	var paths []string
	for _, o := range f.snapshot() {
		if o.root == nil && o.path != "" {
			paths = append(paths, o.path)
		}
	}
	return paths
}

// workingDirectory is where a command runs that names no directory.
func (f *folders) workingDirectory() (string, error) {
	open := f.snapshot()
	switch {
	case len(open) > 1:
		return "", invalid("cwd is required: several workspace folders are open")
	case len(open) == 1 && open[0].root != nil:
		return open[0].root.Path, nil
	case len(open) == 1 && open[0].path != "":
		return open[0].path, nil
	case f.forbidden.Home != "":
		return f.forbidden.Home, nil
	}
	return string(filepath.Separator), nil
}

// filePath is the path that a file: URI names on this host.
func filePath(uri string) (string, error) {
	u, err := url.Parse(uri)
	switch {
	case err != nil:
		return "", fmt.Errorf("reading the URI: %w", err)
	case u.Scheme != "file":
		return "", fmt.Errorf("only file: URIs name folders of this host, not %q", u.Scheme)
	case u.Host != "" && u.Host != "localhost":
		return "", fmt.Errorf("the folder is on another host, %q", u.Host)
	case u.Opaque != "" || u.Path == "":
		return "", errors.New("the URI has no absolute path")
	case u.RawQuery != "" || u.Fragment != "":
		return "", errors.New("the URI has more than a path; encode ? and # in it")
	case strings.ContainsRune(u.Path, 0):
		return "", errors.New("the path has a NUL byte")
	}
	path := u.Path
	if runtime.GOOS == "windows" {
		path = strings.TrimPrefix(path, "/") // /C:/work
	}
	return filepath.FromSlash(path), nil
}

// didChangeWorkspaceFolders holds from the next run on. It runs on the read
// loop so that a run asked for afterwards sees it.
func (c *client) didChangeWorkspaceFolders(_ context.Context, req *rpc.Request) {
	var params proto.DidChangeWorkspaceFoldersParams
	if err := req.Decode(&params); err != nil {
		c.o.Log.Warn("ignoring a change of workspace folders", "reason", err)
		return
	}
	before := c.folders.refusals()
	for _, root := range c.folders.remove(folderURIs(params.Event.Removed)) {
		c.o.Gate.EndRoot(root.Path)
	}
	c.folders.declare(folderURIs(params.Event.Added))
	c.config.SetFolders(c.folders.paths())
	c.settingsChanged()
	for _, refused := range c.folders.refusals() {
		if !slices.Contains(before, refused) {
			c.warnRefusedRoot(refused)
		}
	}
	if c.announced() {
		c.notify(proto.MethodCapabilitiesChanged, proto.CapabilitiesChanged{State: c.probing.state()})
	}
}

func folderURIs(folders []proto.WorkspaceFolder) []string {
	var uris []string
	for _, folder := range folders {
		uris = append(uris, folder.URI)
	}
	return uris
}

func (c *client) warnRefusedRoot(refused proto.RefusedURI) {
	c.notify(proto.MethodLogMessage, proto.LogMessageParams{
		Type:    proto.MessageWarning,
		Message: fmt.Sprintf("confine: the workspace folder %+q is not writable for commands: %s", refused.URI, refused.Reason),
	})
}
