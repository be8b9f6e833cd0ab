package lang

import (
	"bytes"
	"compress/gzip"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"
	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/ianaindex"
)

func decodeBase64(s string) ([]byte, error) {
	b, err := base64.StdEncoding.DecodeString(s)
	if err != nil {
		return nil, errors.New("not valid base64")
	}
	return b, nil
}

func utf8Text(b []byte) (string, error) {
	if !utf8.Valid(b) {
		return "", errors.New("the decoded bytes are not UTF-8 text")
	}
	return string(b), nil
}

var (
	base64Encode = stringFunc(func(s string) (string, error) {
		return base64.StdEncoding.EncodeToString([]byte(s)),
			nil
	})
	base64Decode = stringFunc(func(s string) (string, error) {
		b, err := decodeBase64(s)
		if err != nil {
			return "", err
		}
		return utf8Text(b)
	})
	base64Gzip = stringFunc(func(s string) (string, error) {
		var buf bytes.Buffer
		w := gzip.NewWriter(&buf)
		// Flush before Close, as Terraform does, so that the result has the same bytes.
		if _, err := w.Write([]byte(s)); err != nil {
			return "", err
		}
		if err := errors.Join(w.Flush(), w.Close()); err != nil {
			return "", err
		}
		return base64.StdEncoding.EncodeToString(buf.Bytes()), nil
	})
	base64Gunzip = stringFunc(func(s string) (string, error) {
		b, err := decodeBase64(s)
		if err != nil {
			return "", err
		}
		r, err := gzip.NewReader(bytes.NewReader(b))
		if err != nil {
			return "", errors.New("not valid gzip")
		}
		out, err := io.ReadAll(io.LimitReader(r, maxText+1))
		if err != nil {
			return "", errors.New("not valid gzip")
		}
		if len(out) > maxText {
			return "", fmt.Errorf("the result would be longer than %d MiB", maxText>>20)
		}
		return utf8Text(out)
	})
	textEncodeBase64 = twoStrings("string", "encoding", cty.String, func(s, name string) (cty.Value, error) {
		enc, err := findEncoding(name)
		if err != nil {
			return cty.NilVal, err
		}
		out, err := enc.NewEncoder().Bytes([]byte(s))
		if err != nil {
			// The only possible error is a character that the encoding lacks.
			return cty.NilVal, function.NewArgErrorf(0,
				"the given string contains characters that cannot be represented in %s", name)
		}
		return cty.StringVal(base64.StdEncoding.EncodeToString(out)), nil
	})
	textDecodeBase64 = twoStrings("source", "encoding", cty.String, func(s, name string) (cty.Value, error) {
		enc, err := findEncoding(name)
		if err != nil {
			return cty.NilVal, err
		}
		b, err := decodeBase64(s)
		if err != nil {
			return cty.NilVal, function.NewArgError(0, err)
		}
		out, err := enc.NewDecoder().Bytes(b)
		if err != nil || bytes.ContainsRune(out, utf8.RuneError) {
			return cty.NilVal, function.NewArgErrorf(0, "the given string contains symbols that are not defined for %s",
				name)
		}
		return cty.StringVal(string(out)), nil
	})
	// timeCompare returns -1, 0 or 1.
	timeCompare = twoStrings("timestamp_a", "timestamp_b", cty.Number, func(a, b string) (cty.Value, error) {
		ta, err := parseTime(a)
		if err != nil {
			return cty.NilVal, function.NewArgError(0, err)
		}
		tb, err := parseTime(b)
		if err != nil {
			return cty.NilVal, function.NewArgError(1, err)
		}
		return cty.NumberIntVal(int64(ta.Compare(tb))), nil
	})
	uuidV5 = twoStrings("namespace", "name", cty.String, func(namespace, name string) (cty.Value, error) {
		var space uuid.UUID
		switch namespace {
		case "dns":
			space = uuid.NameSpaceDNS
		case "url":
			space = uuid.NameSpaceURL
		case "oid":
			space = uuid.NameSpaceOID
		case "x500":
			space = uuid.NameSpaceX500
		default:
			var err error
			if space, err = uuid.Parse(namespace); err != nil {
				return cty.NilVal, function.NewArgErrorf(0, `neither a UUID nor one of "dns", "url", "oid" and "x500"`)
			}
		}
		return cty.StringVal(uuid.NewSHA1(space, []byte(name)).String()), nil
	})
	rsaDecrypt = twoStrings("ciphertext", "privatekey", cty.String, func(text, key string) (cty.Value, error) {
		b, err := decodeBase64(text)
		if err != nil {
			return cty.NilVal, function.NewArgError(0, err)
		}
		private, err := rsaKey(key)
		if err != nil {
			return cty.NilVal, function.NewArgError(1, err)
		}
		//lint:ignore SA1019 Terraform defines rsadecrypt with this padding. There is no oracle: the author has the key.
		out, err := rsa.DecryptPKCS1v15(nil, private, b)
		if err != nil {
			return cty.NilVal, function.NewArgErrorf(0, "failed to decrypt: the text was not encrypted for this key")
		}
		s, err := utf8Text(out)
		return cty.StringVal(s), err
	})
)

func findEncoding(name string) (encoding.Encoding, error) {
	enc, err := ianaindex.IANA.Encoding(name)
	if err != nil || enc == nil {
		return nil, function.NewArgErrorf(1, "%q is not a supported IANA encoding name or alias", name)
	}
	return enc, nil
}

func parseTime(s string) (time.Time, error) {
	t, err := time.Parse(time.RFC3339, s)
	if err != nil {
		return t, fmt.Errorf("not a valid RFC3339 timestamp, such as 2006-01-02T15:04:05Z")
	}
	return t, nil
}

func rsaKey(text string) (*rsa.PrivateKey, error) {
	block, _ := pem.Decode([]byte(text))
	if block == nil {
		return nil, errors.New("not a key in PEM")
	}
	switch block.Type {
	case "RSA PRIVATE KEY":
		if key, err := x509.ParsePKCS1PrivateKey(block.Bytes); err == nil {
			return key, nil
		}
	case "PRIVATE KEY":
		if key, err := x509.ParsePKCS8PrivateKey(block.Bytes); err == nil {
			if key, ok := key.(*rsa.PrivateKey); ok {
				return key, nil
			}
		}
	}
	return nil, errors.New("not an RSA private key in PKCS #1 or PKCS #8 without a password")
}

// twoStrings returns a function of two string arguments. If f's error names no argument, the error applies to the whole
// call.
func twoStrings(a, b string, ret cty.Type, f func(a, b string) (cty.Value, error)) function.Function {
	return function.New(&function.Spec{
		Params:       []function.Parameter{{Name: a, Type: cty.String}, {Name: b, Type: cty.String}},
		Type:         function.StaticReturnType(ret),
		RefineResult: notNull,
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			v, err := f(args[0].AsString(), args[1].AsString())
			if err != nil {
				return cty.UnknownVal(ret), err
			}
			return v, nil
		},
	})
}

// notNull refines the result as not null, so that conditions know this even while the result is unknown.
func notNull(b *cty.RefinementBuilder) *cty.RefinementBuilder { return b.NotNull() }
