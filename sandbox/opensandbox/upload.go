package opensandbox

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"

	"github.com/confine-dev/confine/sandbox"
)

// maxUploaded is how many files and folders are uploaded at most.
const maxUploaded = 200_000

// pack is what of a workspace is uploaded.
type pack struct {
	config Config
	tops   []string
	hidden []string
	same   []fs.FileInfo // what is hidden, which may have other names
}

// pack looks at the workspace before anything is made for it: nil if nothing is
// uploaded. What is too large is refused, not cut.
func (p *Provider) pack(ctx context.Context, policy sandbox.Policy) (*pack, error) {
	if p.config.Workspace != WorkspaceUpload {
		return nil, nil
	}
	hidden := slices.Clone(policy.Unreadable)
	if p.config.Secrets != nil {
		hidden = append(hidden, p.config.Secrets()...)
	}
	k := newPack(p.config, rootsOnly(policy), hidden)
	var size int64
	var count int
	for _, top := range k.tops {
		err := k.walk(ctx, top, func(_ *os.Root, name string, info fs.FileInfo) error {
			if count++; count > maxUploaded {
				return &tooMuch{fmt.Sprintf("more than %d files and folders", maxUploaded)}
			}
			if info.Mode().IsRegular() {
				if size += info.Size(); size > k.config.UploadSize {
					return &tooMuch{fmt.Sprintf("more than %d bytes", k.config.UploadSize)}
				}
			}
			return nil
		})
		if large, ok := errors.AsType[*tooMuch](err); ok {
			return nil, unusable(policy, fmt.Sprintf("the workspace %q has %s to upload", top, large.what),
				"leave out what commands do not need with sandbox_upload_skip", "raise sandbox_upload_size", `set sandbox_workspace = "none"`)
		}
		if err != nil {
			return nil, fmt.Errorf("looking at what is to be uploaded of %q: %w", top, err)
		}
	}
	return k, nil
}

func newPack(c Config, tops, hidden []string) *pack {
	k := &pack{config: c, tops: tops, hidden: hidden}
	for _, path := range hidden {
		if info, err := os.Stat(path); err == nil {
			k.same = append(k.same, info)
		}
	}
	return k
}

// tooMuch says what there is too much of.
type tooMuch struct{ what string }

func (e *tooMuch) Error() string { return e.what }

// visitor is called with what is uploaded: its name below the root, and the open
// folder that it is in.
type visitor func(dir *os.Root, name string, info fs.FileInfo) error

// walk calls visit with what is uploaded of a root: folders, files and links, which
// are not followed. What cannot be read is left out, as a command could not read it.
func (k *pack) walk(ctx context.Context, top string, visit visitor) error {
	root, err := os.OpenRoot(top)
	if err != nil {
		return err
	}
	defer root.Close()
	return k.walkFolder(ctx, root, top, ".", visit)
}

// walkFolder is walk for one folder. It goes from open folder to open folder, since a
// name may lead into what is hidden as soon as it was looked at.
func (k *pack) walkFolder(ctx context.Context, dir *os.Root, full, name string, visit visitor) error {
	entries, _ := fs.ReadDir(dir.FS(), ".")
	for _, entry := range entries {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		full, name := filepath.Join(full, entry.Name()), path.Join(name, entry.Name())
		info, err := dir.Lstat(entry.Name())
		if err != nil || !info.IsDir() && !info.Mode().IsRegular() && info.Mode()&fs.ModeSymlink == 0 || k.skips(full, name, info) {
			continue
		}
		if err := visit(dir, name, info); err != nil {
			return err
		}
		if !info.IsDir() {
			continue
		}
		inner, err := dir.OpenRoot(entry.Name())
		if err != nil {
			continue
		}
		if opened, err := inner.Stat("."); err == nil && os.SameFile(info, opened) {
			err = k.walkFolder(ctx, inner, full, name, visit)
			inner.Close()
			if err != nil {
				return err
			}
			continue
		}
		inner.Close()
	}
	return nil
}

// skips reports whether something is not uploaded: it is hidden, by this name or
// another, or the settings say so by its name or its path below the root.
func (k *pack) skips(full, name string, info fs.FileInfo) bool {
	return slices.ContainsFunc(k.hidden, func(h string) bool { return sandbox.Within(full, h) }) ||
		slices.ContainsFunc(k.same, func(hidden fs.FileInfo) bool { return os.SameFile(hidden, info) }) ||
		slices.ContainsFunc(k.config.UploadSkip, func(skip string) bool { return skip == path.Base(name) || skip == name })
}

// write writes a root as a compressed tar archive.
func (k *pack) write(ctx context.Context, top string, to io.Writer) error {
	zipped, err := gzip.NewWriterLevel(to, gzip.BestSpeed)
	if err != nil {
		return err
	}
	archive := tar.NewWriter(zipped)
	left := k.config.UploadSize
	err = k.walk(ctx, top, func(dir *os.Root, name string, info fs.FileInfo) error {
		return addFile(archive, dir, name, info, &left)
	})
	return errors.Join(err, archive.Close(), zipped.Close())
}

// addFile adds one entry. A file that changed since it was looked at is added as it is
// now, or left out if it is no file any more.
func addFile(archive *tar.Writer, dir *os.Root, name string, info fs.FileInfo, left *int64) error {
	header := &tar.Header{Name: name, Mode: int64(info.Mode().Perm()), ModTime: info.ModTime()}
	switch {
	case info.IsDir():
		header.Typeflag, header.Name = tar.TypeDir, name+"/"
		return archive.WriteHeader(header)
	case info.Mode()&fs.ModeSymlink != 0:
		target, err := dir.Readlink(path.Base(name))
		if err != nil {
			return nil // it is gone, or something else
		}
		header.Typeflag, header.Linkname = tar.TypeSymlink, target
		return archive.WriteHeader(header)
	}
	file, err := dir.OpenFile(path.Base(name), os.O_RDONLY|openFlags, 0)
	if err != nil {
		return nil // it cannot be read, or is gone
	}
	defer file.Close()
	opened, err := file.Stat()
	if err != nil || !os.SameFile(info, opened) {
		return nil
	}
	header.Typeflag, header.Size = tar.TypeReg, opened.Size()
	if *left -= header.Size; *left < 0 {
		return &tooMuch{"more than it had when it was looked at"}
	}
	if err := archive.WriteHeader(header); err != nil {
		return err
	}
	n, err := io.Copy(archive, io.LimitReader(file, header.Size))
	if err == nil && n < header.Size { // it became shorter
		_, err = io.CopyN(archive, zeros{}, header.Size-n)
	}
	return err
}

// zeros are what a file that became shorter is filled with, as its length is told before.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// furnish makes the folders of the workspace in a new sandbox and uploads what is to
// be in them.
func (p *Provider) furnish(ctx context.Context, r *remote, policy sandbox.Policy, k *pack) *failure {
	tops := rootsOnly(policy)
	if p.config.Workspace == WorkspaceMount || len(tops) == 0 {
		return nil
	}
	if f := r.execd.makeFolders(ctx, tops); f != nil || k == nil {
		return f
	}
	for _, top := range tops {
		if f := p.uploadRoot(ctx, r, k, top); f != nil {
			return f
		}
	}
	return nil
}

// uploadRoot uploads an archive of a root and unpacks it there.
func (p *Provider) uploadRoot(ctx context.Context, r *remote, k *pack, top string) *failure {
	ctx, cancel := context.WithTimeout(ctx, p.config.Startup)
	defer cancel()
	name := ".confine-" + r.token + ".tgz"
	content, sink := io.Pipe()
	written := make(chan error, 1)
	go func() {
		err := k.write(ctx, top, sink)
		sink.CloseWithError(err)
		written <- err
	}()
	f := r.execd.upload(ctx, path.Join(top, name), content)
	content.CloseWithError(errors.New("the upload ended"))
	if err := <-written; f == nil && err != nil {
		f = &failure{text: fmt.Sprintf("reading %q: %v", top, err)}
	}
	if f != nil {
		f.text = fmt.Sprintf("uploading %q: %s", top, f.text)
		return f
	}
	v, f := r.execd.run(ctx, order{Command: fmt.Sprintf("tar -xzf %s; s=$?; rm -f %s; exit $s", quote("./"+name), quote("./"+name)), Cwd: top})
	switch {
	case f != nil:
		f.text = fmt.Sprintf("unpacking %q: %s", top, f.text)
	case v.kind != exited || v.code != 0:
		f = &failure{sent: true, text: fmt.Sprintf("unpacking %q: tar failed in the image %s with status %d", top, p.config.Image, v.code)}
	}
	return f
}
