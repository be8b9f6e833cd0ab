package registry

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
)

// ChecksumError is the error for a downloaded file with a wrong checksum.
type ChecksumError struct {
	// URL is the URL of the file.
	URL string
	// Want and Got are SHA-256 checksums in hexadecimal.
	Want, Got string
}

func (e *ChecksumError) Error() string {
	return fmt.Sprintf("checksum mismatch: %s should have the SHA-256 sum %s and has %s", e.URL, e.Want, e.Got)
}

// download writes a package to a file, overwriting its content, and returns its SHA-256 checksum. If want is not empty,
// another checksum is a *ChecksumError.
func (c *Client) download(ctx context.Context, u *url.URL, token string, into *os.File,
	want ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, packageTimeout)
	defer cancel()
	var got string
	err := c.retry(ctx, u, func() error {
		body, _, err := c.get(ctx, u, token)
		if err != nil {
			return err
		}
		defer body.Close()
		if _, err := into.Seek(0, io.SeekStart); err != nil {
			return permanentError{err}
		}
		if err := into.Truncate(0); err != nil {
			return permanentError{err}
		}
		sum := sha256.New()
		n, err := io.Copy(io.MultiWriter(into, sum), io.LimitReader(body, maxPackage+1))
		if pe, ok := errors.AsType[*os.PathError](err); ok { // an error of the disk, not the network
			return permanentError{pe}
		}
		if err == nil && n > maxPackage {
			return permanentError{fmt.Errorf("the package is larger than %d bytes", maxPackage)}
		}
		got = hex.EncodeToString(sum.Sum(nil))
		return err
	})
	if err != nil {
		return "", err
	}
	for _, w := range want {
		if w == got {
			return got, nil
		}
	}
	if len(want) > 0 {
		return "", &ChecksumError{URL: plain(u), Want: want[0], Got: got}
	}
	return got, nil
}
