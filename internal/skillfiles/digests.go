package skillfiles

import (
	"crypto/sha256"
	"encoding/hex"
	"io/fs"
	"path"
	"sync"
	"time"

	"github.com/vak-actors/vak-actors/internal/rootfs"
)

const (
	maxDigests = 16 << 10 // files whose digests are kept; beyond it all are forgotten

	// settled is how long a file has to be left alone before its digest is kept: of two edits at one moment the clock of a
	// file system may show one.
	settled = 2 * time.Second
)

// digests are those of files that were read before and have not changed since, as far as size and time tell.
type digests struct {
	mu     sync.Mutex // guards byPath
	byPath map[string]digest
}

type digest struct {
	size int64
	time time.Time // of the last change
	hex  string
}

// of is the digest and size of a file of a skill, and its text where that had to be read; most bounds its bytes. folder makes
// the path unique among the skills of the store.
func (d *digests) of(root *rootfs.Root, folder, rel string, entry fs.DirEntry, most int64) (sum string, size int64, text []byte, err error) {
	key := path.Join(folder, rel)
	info, err := entry.Info()
	if err == nil {
		d.mu.Lock()
		known, is := d.byPath[key]
		d.mu.Unlock()
		if is && known.size == info.Size() && known.time.Equal(info.ModTime()) && known.size <= most {
			return known.hex, known.size, nil, nil
		}
	}
	if text, err = read(root, rel, most); err != nil {
		return "", 0, nil, err
	}
	hash := sha256.Sum256(text)
	sum, size = hex.EncodeToString(hash[:]), int64(len(text))
	if info != nil && info.Size() == size && time.Since(info.ModTime()) > settled {
		d.keep(key, digest{size, info.ModTime(), sum})
	}
	return sum, size, text, nil
}

func (d *digests) keep(key string, known digest) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.byPath == nil || len(d.byPath) >= maxDigests {
		d.byPath = map[string]digest{}
	}
	d.byPath[key] = known
}
