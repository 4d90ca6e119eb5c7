package pluginstore

import (
	"archive/tar"
	"archive/zip"
	"bufio"
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
	"strings"

	"github.com/vak-actors/vak-actors/internal/rootfs"
	"github.com/vak-actors/vak-actors/internal/vakerr"
)

// take copies a folder or an archive into a stage.
func (s *stage) take(ctx context.Context, source string) error {
	info, err := os.Stat(source)
	if err != nil {
		return vakerr.New(vakerr.FileNotFound, "there is no plugin at %s", source).WithRemedy("name a folder, a .zip, .tar.gz or .mcpb file").WithCause(err)
	}
	if info.IsDir() {
		return s.takeFolder(ctx, source)
	}
	if !info.Mode().IsRegular() {
		return vakerr.New(vakerr.PluginUnsafe, "%s is neither a folder nor a file", source).WithRemedy("name a folder, a .zip, .tar.gz or .mcpb file")
	}
	f, err := os.Open(source)
	if err != nil {
		return vakerr.New(vakerr.FileNotFound, "the archive %s cannot be read", source).WithRemedy("make it readable").WithCause(err)
	}
	defer f.Close()
	return s.takeArchive(ctx, f, info.Size())
}

// takeArchive tells the kinds of archives apart by how they begin.
func (s *stage) takeArchive(ctx context.Context, f io.ReaderAt, size int64) error {
	if size > s.most.Bytes {
		return vakerr.New(vakerr.PluginUnsafe, "the archive has more than %d bytes", s.most.Bytes).WithRemedy("take out what the plugin does not need")
	}
	head := make([]byte, 4)
	n, _ := f.ReadAt(head, 0)
	switch {
	case n >= 4 && string(head) == "PK\x03\x04":
		return s.takeZip(ctx, f, size)
	case n >= 2 && head[0] == 0x1f && head[1] == 0x8b:
		return s.takeTar(ctx, io.NewSectionReader(f, 0, size))
	}
	return vakerr.New(vakerr.PluginInvalid, "the file is no archive that can be read").WithRemedy("pack the plugin as .zip or .tar.gz")
}

// takeFolder copies a folder without its .git. Nothing is followed: a link is refused where it stands.
func (s *stage) takeFolder(ctx context.Context, source string) error {
	root, err := os.OpenRoot(source)
	if err != nil {
		return vakerr.New(vakerr.FileNotFound, "the folder %s cannot be read", source).WithRemedy("make it readable").WithCause(err)
	}
	defer root.Close()
	return fs.WalkDir(root.FS(), ".", func(p string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return vakerr.New(vakerr.PluginUnsafe, "the entry %q cannot be read", p).WithRemedy("make it readable").WithCause(err)
		case ctx.Err() != nil:
			return canceled(ctx)
		case p == ".":
			return nil
		case e.Name() == ".git":
			if e.IsDir() {
				return fs.SkipDir
			}
			return nil // of a worktree or a submodule
		case e.IsDir():
			return s.addFolder(p)
		}
		return s.copyFile(root, p, e)
	})
}

func (s *stage) copyFile(root *os.Root, p string, e fs.DirEntry) error {
	if why := refusedMode(e.Type()); why != "" {
		return unsafe(p, why)
	}
	f, err := root.Open(p)
	if err != nil {
		return vakerr.New(vakerr.PluginUnsafe, "the entry %q cannot be read", p).WithRemedy("make it readable").WithCause(err)
	}
	defer f.Close()
	info, err := f.Stat()
	switch {
	case err != nil || !info.Mode().IsRegular():
		return unsafe(p, "it is no regular file")
	case links(info) > 1:
		return unsafe(p, "it is a hard link")
	}
	return s.addFile(p, info.Mode()&0o111 != 0, f)
}

// refusedMode says why a file of this type is not taken; empty for a regular one.
func refusedMode(mode fs.FileMode) string {
	switch {
	case mode&fs.ModeSymlink != 0:
		return "it is a symbolic link"
	case !mode.IsRegular():
		return "it is a special file"
	}
	return ""
}

func (s *stage) takeZip(ctx context.Context, f io.ReaderAt, size int64) error {
	z, err := zip.NewReader(f, size)
	if err != nil && !errors.Is(err, zip.ErrInsecurePath) {
		return notWhole(err)
	}
	if len(z.File) > s.most.Files {
		return unsafe(z.File[s.most.Files].Name, fmt.Sprintf("there are more than %d files and folders", s.most.Files))
	}
	s.packed = func() int64 { return size }
	for _, e := range z.File {
		if err := ctx.Err(); err != nil {
			return canceled(ctx)
		}
		name, folder := strings.CutSuffix(e.Name, "/")
		switch {
		case e.Mode()&fs.ModeSymlink != 0 || !e.Mode().IsRegular() && !e.Mode().IsDir():
			return unsafe(e.Name, refusedMode(e.Mode().Type()))
		case folder || e.Mode().IsDir():
			err = s.addFolder(name)
		default:
			err = s.unzip(name, e)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (s *stage) unzip(name string, e *zip.File) error {
	content, err := e.Open()
	if err != nil {
		return notWhole(err)
	}
	defer content.Close()
	return s.addFile(name, e.Mode()&0o111 != 0, content)
}

// counter counts what was read of an archive.
type counter struct {
	from io.Reader
	n    int64
}

func (c *counter) Read(p []byte) (int, error) {
	n, err := c.from.Read(p)
	c.n += int64(n)
	return n, err
}

func (s *stage) takeTar(ctx context.Context, f io.Reader) error {
	packed := &counter{from: f}
	unpacked, err := gzip.NewReader(bufio.NewReader(packed))
	if err != nil {
		return notWhole(err)
	}
	s.packed = func() int64 { return packed.n }
	// The bound holds for the archive as a whole, too: headers and paddings cost time and are no file.
	t := tar.NewReader(io.LimitReader(unpacked, s.most.Bytes+int64(s.most.Files)*4096))
	for {
		if err := ctx.Err(); err != nil {
			return canceled(ctx)
		}
		h, err := t.Next()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil && !errors.Is(err, tar.ErrInsecurePath):
			return notWhole(err)
		}
		if err := s.untar(h, t); err != nil {
			return err
		}
	}
}

func (s *stage) untar(h *tar.Header, content io.Reader) error {
	name := strings.TrimPrefix(h.Name, "./")
	switch h.Typeflag {
	case tar.TypeReg:
		return s.addFile(name, h.FileInfo().Mode()&0o111 != 0, content)
	case tar.TypeDir:
		if name = strings.TrimSuffix(name, "/"); name == "" || name == "." {
			return nil
		}
		return s.addFolder(name)
	case tar.TypeXGlobalHeader:
		return nil // a remark of git on the whole archive
	case tar.TypeSymlink:
		return unsafe(h.Name, "it is a symbolic link")
	case tar.TypeLink:
		return unsafe(h.Name, "it is a hard link")
	}
	return unsafe(h.Name, "it is a special file")
}

func notWhole(err error) *vakerr.Error {
	return vakerr.New(vakerr.PluginInvalid, "the archive is damaged, or packed in a way that is not supported").
		WithRemedy("pack the plugin again, as .zip or .tar.gz").WithCause(err)
}

func canceled(ctx context.Context) *vakerr.Error {
	return vakerr.New(vakerr.Canceled, "the installation was given up; nothing was installed").WithCause(context.Cause(ctx))
}

// inner is the folder of a stage that holds the plugin: the stage itself, or, as archives of a repository have it, the one
// folder in it.
func (s *stage) inner() string {
	var top []string
	for p := range s.kinds {
		if first, _, _ := strings.Cut(p, "/"); !slices.Contains(top, first) {
			top = append(top, first)
		}
	}
	if len(top) == 1 && s.kinds[top[0]] && s.packed != nil && !strings.HasPrefix(top[0], ".") && !slices.Contains([]string{"skills", "commands", "hooks", "agents"}, top[0]) {
		return top[0]
	}
	return "."
}

// commitOf is the commit that a folder of a git checkout stands at; empty when it is none. It reads files and runs nothing.
func commitOf(folder string) string {
	for dir := folder; ; dir = filepath.Dir(dir) {
		git := filepath.Join(dir, ".git")
		if head := gitFile(filepath.Join(git, "HEAD")); head != "" {
			ref, symbolic := strings.CutPrefix(head, "ref: ")
			if !symbolic {
				return hexOnly(head)
			}
			if !filepath.IsLocal(ref) {
				return ""
			}
			if commit := hexOnly(gitFile(filepath.Join(git, filepath.FromSlash(ref)))); commit != "" {
				return commit
			}
			for line := range strings.Lines(gitFile(filepath.Join(git, "packed-refs"))) {
				if commit, name, _ := strings.Cut(strings.TrimSpace(line), " "); name == ref {
					return hexOnly(commit)
				}
			}
			return ""
		}
		if dir == filepath.Dir(dir) {
			return ""
		}
	}
}

// maxGitFile bounds a file of a git folder, in bytes.
const maxGitFile = 16 << 20

// gitFile is what a file of a git folder holds; nothing where it cannot be read.
func gitFile(name string) string {
	text, err := rootfs.ReadFile(name, maxGitFile)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(text))
}

func hexOnly(text string) string {
	if len(text) < 40 || len(text) > 64 || strings.Trim(text, "0123456789abcdef") != "" {
		return ""
	}
	return text
}

// fallbackName is the name of a plugin whose files do not tell one: that of the folder or archive.
func fallbackName(source string) string {
	name := filepath.Base(source)
	for _, ext := range []string{".zip", ".mcpb", ".dxt", ".tgz", ".tar.gz"} {
		name = strings.TrimSuffix(name, ext)
	}
	return path.Base(filepath.ToSlash(name))
}
