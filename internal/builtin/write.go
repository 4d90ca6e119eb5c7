package builtin

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/vak-actors/vak-actors/capability"
	"github.com/vak-actors/vak-actors/internal/op"
	"github.com/vak-actors/vak-actors/internal/rootfs"
	"github.com/vak-actors/vak-actors/internal/vakerr"
)

// maxWritten is the largest file that write makes and edit changes, in bytes.
const maxWritten = 4 << 20

// Writer is the tool that writes a file.
const Writer = "write"

func (f *files) writeOp() op.Op {
	return op.Op{Run: f.write, WriteTarget: f.writeTarget, Declaration: declaration(Writer,
		"Writes a file of the workspace, whole.",
		"Makes the file and its folders where they are missing and replaces what was there. To change a part of a file, use edit.",
		`{"type":"object","additionalProperties":false,"required":["path","content"],"properties":{
			"path":{"type":"string","minLength":1,"description":"The file, relative to the workspace."},
			"content":{"type":"string","maxLength":4194304}}}`,
		capability.Domains{capability.Filesystem},
		capability.Tool{Idempotent: true, HostOnly: true},
	)}
}

func (f *files) editOp() op.Op {
	return op.Op{Run: f.edit, WriteTarget: f.writeTarget, Declaration: declaration("edit",
		"Replaces a text in a file of the workspace.",
		"old_string must be in the file exactly once, with its white space, unless replace_all is set.",
		`{"type":"object","additionalProperties":false,"required":["path","old_string","new_string"],"properties":{
			"path":{"type":"string","minLength":1,"description":"The file, relative to the workspace."},
			"old_string":{"type":"string","minLength":1},
			"new_string":{"type":"string"},
			"replace_all":{"type":"boolean","description":"Replace every occurrence."}}}`,
		capability.Domains{capability.Filesystem},
		capability.Tool{HostOnly: true},
	)}
}

// writeTarget is the file a call of write or edit names. It reads nothing but the arguments.
func (f *files) writeTarget(arguments json.RawMessage) (string, error) {
	var args struct {
		Path string `json:"path"`
	}
	if err := json.Unmarshal(arguments, &args); err != nil {
		return "", vakerr.New(vakerr.InvalidArguments, "the arguments name no path").WithRemedy("name the file to write").WithCause(err)
	}
	return rootfs.Relative(f.workspace, args.Path)
}

func (f *files) write(_ context.Context, c op.Call) (op.Result, error) {
	var args struct {
		Path    string `json:"path"`
		Content string `json:"content"`
	}
	if err := op.Decode(c.Arguments, &args); err != nil {
		return op.Result{}, err
	}
	f.writing.Lock()
	defer f.writing.Unlock()
	if err := c.Commit(); err != nil { // others wrote meanwhile, and an operator may have revoked
		return op.Result{}, err
	}
	root, target, err := f.openTarget(c, args.Path)
	if err != nil {
		return op.Result{}, err
	}
	defer root.Close()
	created, err := save(c, root, target, []byte(args.Content))
	if err != nil {
		return op.Result{}, err
	}
	did := "replaced"
	if created {
		did = "made"
	}
	return op.Text(fmt.Sprintf("%s %s, %d bytes", did, target, len(args.Content))), nil
}

// openTarget opens the workspace and follows the links of the path to write. The paths this run may write, and the
// permission rules, are asked again with what the links lead to: the checks before dispatch have seen names only.
func (f *files) openTarget(c op.Call, p string) (*rootfs.Root, string, error) {
	root, rel, err := f.open(p)
	if err != nil {
		return nil, "", err
	}
	target, err := root.Resolve(rel)
	if err == nil {
		err = op.CheckWritePath(c.WritePaths, target)
	}
	if err == nil && target != rel {
		err = c.PermitPath(target)
	}
	if err != nil {
		root.Close()
		return nil, "", err
	}
	return root, target, nil
}

// save is the effect. The call has waited for the calls before it, so the gate is asked once more.
func save(c op.Call, root *rootfs.Root, target string, content []byte) (created bool, err error) {
	if len(content) > maxWritten {
		return false, vakerr.New(vakerr.TooLarge, "the content has %d bytes, more than the %d that are written", len(content), maxWritten).
			WithRemedy("write less, or several files")
	}
	if err := c.Commit(); err != nil {
		return false, err
	}
	return root.WriteAtomic(target, content, 0o644)
}

func (f *files) edit(_ context.Context, c op.Call) (op.Result, error) {
	var args struct {
		Path       string `json:"path"`
		Old        string `json:"old_string"`
		New        string `json:"new_string"`
		ReplaceAll bool   `json:"replace_all"`
	}
	if err := op.Decode(c.Arguments, &args); err != nil {
		return op.Result{}, err
	}
	f.writing.Lock()
	defer f.writing.Unlock()
	if err := c.Commit(); err != nil { // others wrote meanwhile, and an operator may have revoked
		return op.Result{}, err
	}
	root, target, err := f.openTarget(c, args.Path)
	if err != nil {
		return op.Result{}, err
	}
	defer root.Close()
	text, err := load(root, target)
	if err != nil {
		return op.Result{}, err
	}
	n := strings.Count(text, args.Old)
	if err := editable(target, args.Old, args.New, n, args.ReplaceAll); err != nil {
		return op.Result{}, err
	}
	// The size is known before the text is built: many short matches could grow it beyond all bounds.
	if size := len(text) + n*(len(args.New)-len(args.Old)); size > maxWritten {
		return op.Result{}, vakerr.New(vakerr.TooLarge, "%q would have %d bytes, more than the %d that are written", target, size, maxWritten).
			WithRemedy("replace less")
	}
	if _, err := save(c, root, target, []byte(strings.ReplaceAll(text, args.Old, args.New))); err != nil {
		return op.Result{}, err
	}
	if n == 1 {
		return op.Text("replaced 1 occurrence in " + target), nil
	}
	return op.Text(fmt.Sprintf("replaced %d occurrences in %s", n, target)), nil
}

func load(root *rootfs.Root, target string) (string, error) {
	file, info, err := root.OpenRegular(target)
	if err != nil {
		return "", err
	}
	defer func() { _ = file.Close() }()
	if info.Size() > maxWritten {
		return "", vakerr.New(vakerr.TooLarge, "%q has more than %d MiB", target, maxWritten>>20).WithRemedy("change it with another program")
	}
	text, err := io.ReadAll(io.LimitReader(file, maxWritten+1))
	if err != nil {
		return "", unreadable(target, err)
	}
	if !utf8.Valid(text) || bytes.IndexByte(text, 0) >= 0 {
		return "", vakerr.New(vakerr.InvalidArguments, "%q is no text file", target).WithRemedy("edit only text files")
	}
	return string(text), nil
}

func editable(target, old, replacement string, n int, all bool) error {
	switch {
	case old == "":
		return vakerr.New(vakerr.InvalidArguments, "old_string is empty").WithRemedy("give the text to replace, or use write")
	case old == replacement:
		return vakerr.New(vakerr.InvalidArguments, "old_string and new_string are equal").WithRemedy("give the new text")
	case n == 0:
		return vakerr.New(vakerr.InvalidArguments, "old_string is not in %q", target).
			WithRemedy("read the file and copy the text exactly, with its white space")
	case n > 1 && !all:
		return vakerr.New(vakerr.InvalidArguments, "old_string is in %q %d times", target, n).
			WithRemedy("give more of the text around it, or set replace_all")
	}
	return nil
}
