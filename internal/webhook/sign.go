package webhook

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Headers of Standard Webhooks:
// https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md
const (
	HeaderID        = "Webhook-Id"
	HeaderTimestamp = "Webhook-Timestamp"
	HeaderSignature = "Webhook-Signature"
)

const (
	// keyPrefix begins a key in base64.
	keyPrefix = "whsec_"
	// minKey is the minimum size of a key in bytes.
	minKey = 24
)

// Sign adds the headers of Standard Webhooks to a request. The key is the text of a Secret: "whsec_" and a key in
// base64, or the key itself. It must have at least 24 bytes.
func Sign(header http.Header, key []byte, id string, at time.Time, body []byte) error {
	key, err := decodeKey(key)
	if err != nil {
		return err
	}
	timestamp := strconv.FormatInt(at.Unix(), 10)
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(id + "." + timestamp + "."))
	mac.Write(body)
	header.Set(HeaderID, id)
	header.Set(HeaderTimestamp, timestamp)
	header.Set(HeaderSignature, "v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil)))
	return nil
}

// CheckKey returns an error for a key that Sign does not accept. The error does not have the key.
func CheckKey(key []byte) error {
	_, err := decodeKey(key)
	return err
}

// decodeKey returns the key that the text of a Secret has.
func decodeKey(key []byte) ([]byte, error) {
	if text, ok := strings.CutPrefix(strings.TrimSpace(string(key)), keyPrefix); ok {
		decoded, err := base64.StdEncoding.DecodeString(text)
		if err != nil {
			return nil, errors.New("it begins with whsec_, and the rest is not base64")
		}
		key = decoded
	}
	if len(key) < minKey {
		return nil, errors.New("it must have at least 24 bytes")
	}
	return key, nil
}
