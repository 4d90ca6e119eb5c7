package builtin

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"
	"unicode/utf8"

	"github.com/vak-actors/vak-actors/capability"
	"github.com/vak-actors/vak-actors/internal/op"
	"github.com/vak-actors/vak-actors/internal/rootfs"
	"github.com/vak-actors/vak-actors/internal/vakerr"
)

// Bounds of one read.
const (
	readLines   = 2000     // lines, unless the call says otherwise
	readScanned = 64 << 20 // bytes looked at to find the first line
	binaryProbe = 8000     // bytes at the start that tell a text from other files
)

// Reader is the tool that reads a file.
const Reader = "read"

func (f *files) readOp() op.Op {
	return op.Op{Run: f.read, Declaration: declaration(Reader,
		"Reads a text file of the workspace.",
		"Returns the lines as they are. For a long file, go on with offset.",
		`{"type":"object","additionalProperties":false,"required":["path"],"properties":{
			"path":{"type":"string","minLength":1,"description":"The file, relative to the workspace; of a skill from elsewhere its absolute path."},
			"offset":{"type":"integer","minimum":1,"description":"The first line to return, counted from 1."},
			"limit":{"type":"integer","minimum":1,"maximum":20000,"description":"How many lines to return; 2000 if absent."}}}`,
		capability.Domains{capability.Filesystem},
		capability.Tool{ReadOnly: true, Idempotent: true, AlwaysLoaded: true, HostOnly: true},
	)}
}

func (f *files) read(ctx context.Context, c op.Call) (op.Result, error) {
	var args struct {
		Path   string `json:"path"`
		Offset int    `json:"offset"`
		Limit  int    `json:"limit"`
	}
	if err := op.Decode(c.Arguments, &args); err != nil {
		return op.Result{}, err
	}
	root, folder, rel, err := f.openFor(c, args.Path)
	if err != nil {
		return op.Result{}, err
	}
	defer root.Close()
	// A link is judged by what it leads to; the file is opened by that name.
	target, err := root.Resolve(rel)
	if err == nil && c.PermitPath != nil {
		err = c.PermitPath(path.Join(folder, target))
	}
	if err != nil {
		return op.Result{}, err
	}
	file, _, err := root.OpenRegular(target)
	if err != nil {
		return op.Result{}, err
	}
	defer func() { _ = file.Close() }()
	in := bufio.NewReaderSize(file, 64<<10)
	if start, err := in.Peek(binaryProbe); err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, bufio.ErrBufferFull) {
		return op.Result{}, unreadable(rel, err)
	} else if isBinary(start) {
		return op.Result{}, vakerr.New(vakerr.InvalidArguments, "%q is no text file", rel).WithRemedy("read only text files")
	}
	if args.Limit <= 0 {
		args.Limit = readLines
	}
	page := page{first: max(args.Offset, 1), limit: args.Limit}
	if err := page.fill(ctx, in); err != nil {
		return op.Result{}, unreadable(rel, err)
	}
	return page.result(rel)
}

// openFor opens the folder that a path to be read lies in: the workspace, or the folder of an admitted skill, which may lie
// elsewhere. folder is the latter, and empty for the workspace.
func (f *files) openFor(c op.Call, p string) (root *rootfs.Root, folder, rel string, err error) {
	root, rel, err = f.open(p)
	if vakerr.CodeOf(err) != vakerr.PathEscapes || c.Bound == nil || !path.IsAbs(p) {
		return root, "", rel, err
	}
	for _, folder := range c.Bound.SkillFolders() {
		if rel, outside := rootfs.Relative(folder, p); outside == nil {
			root, err = rootfs.Open(folder)
			return root, folder, rel, err
		}
	}
	return nil, "", "", err
}

func unreadable(rel string, err error) error {
	switch {
	case errors.Is(err, errFar):
		return vakerr.New(vakerr.TooLarge, "the line asked for stands more than %d MiB into %q", readScanned>>20, rel).
			WithRemedy("search the file with grep")
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return ended(err)
	}
	return vakerr.New(vakerr.WorkspaceUnreadable, "%q cannot be read to its end", rel).
		WithRemedy("look for the cause in the daemon's log").WithCause(err)
}

// ended is the error of a call whose context ended.
func ended(err error) error {
	if errors.Is(err, context.DeadlineExceeded) {
		return vakerr.New(vakerr.DeadlineExceeded, "the time of the call is over").WithRemedy("ask for less").WithCause(err)
	}
	return vakerr.New(vakerr.Canceled, "the call was canceled").WithCause(err)
}

// isBinary reports whether the start of a file is no text: it holds a zero byte or is not UTF-8.
func isBinary(start []byte) bool {
	if bytes.IndexByte(start, 0) >= 0 {
		return true
	}
	for cut := range utf8.UTFMax { // the last character may be cut
		if len(start) >= cut && utf8.Valid(start[:len(start)-cut]) {
			return false
		}
	}
	return true
}

var errFar = errors.New("too far into the file")

// page is the part of a file that one call returns.
type page struct {
	first, limit int // lines, counted from 1

	text  strings.Builder
	lines int  // in text
	total int  // lines seen
	more  bool // the file goes on after the page
	cut   bool // the last line in text is not whole
}

// fill reads the page. Lines are taken in pieces of the reader's buffer, so a file without line ends costs no memory.
func (p *page) fill(ctx context.Context, in *bufio.Reader) error {
	scanned, lineStart := 0, true
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		piece, err := in.ReadSlice('\n')
		if len(piece) > 0 {
			if lineStart {
				p.total++
			}
			switch full := p.lines >= p.limit && lineStart; {
			case full || p.cut:
				p.more = true
				return nil
			case p.total >= p.first:
				p.take(piece, lineStart)
			default:
				if scanned += len(piece); scanned > readScanned {
					return errFar
				}
			}
			lineStart = piece[len(piece)-1] == '\n'
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			return err
		}
	}
}

func (p *page) take(piece []byte, lineStart bool) {
	if room := MaxText - p.text.Len(); len(piece) > room {
		piece = piece[:room]
		p.cut = true
	}
	if lineStart {
		p.lines++
	}
	p.text.Write(piece)
}

func (p *page) result(rel string) (op.Result, error) {
	if p.lines == 0 {
		if p.total == 0 {
			return op.Text("[the file is empty]"), nil
		}
		return op.Result{}, vakerr.New(vakerr.InvalidArguments, "offset is %d and %q has %d lines", p.first, rel, p.total).
			WithRemedy("give a smaller offset")
	}
	text := strings.ToValidUTF8(p.text.String(), "\uFFFD")
	last := p.first + p.lines - 1
	switch {
	case p.cut:
		text += fmt.Sprintf("\n[line %d is cut here: a result holds %d KiB]", last, MaxText>>10)
	case p.more:
		text += fmt.Sprintf("[lines %d to %d; go on with offset %d]", p.first, last, last+1)
	}
	return op.Text(text), nil
}
