package access

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"os"
	"path/filepath"
	"time"

	"github.com/hykube/hykube/internal/atomicfile"
)

const (
	authorityLifetime   = 10 * 365 * 24 * time.Hour
	certificateLifetime = 365 * 24 * time.Hour
	// renewBefore is the remaining lifetime at which a certificate is replaced.
	renewBefore = 90 * 24 * time.Hour
	// backdate is the tolerance for clients whose clocks are slow.
	backdate = time.Hour
)

// authority is a certificate authority: a certificate with its private key.
type authority struct {
	cert    *x509.Certificate
	certPEM []byte
	key     crypto.Signer
}

// loadAuthority reads an authority from dir. It creates one if there is none.
func loadAuthority(dir, name, commonName string, now time.Time) (*authority, error) {
	certPath, keyPath := filepath.Join(dir, name+".crt"), filepath.Join(dir, name+".key")
	a, err := readPair(certPath, keyPath)
	switch {
	case err == nil:
		if now.After(a.cert.NotAfter) {
			return nil, fmt.Errorf("use certificate authority %q: it expired on %s; remove it and %q, so that the server creates new ones, and give every client the new kubeconfig",
				certPath, a.cert.NotAfter.Format(time.DateOnly), keyPath)
		}
		return a, nil
	case !errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("read certificate authority: %w", err)
	}
	_, certErr := os.Stat(certPath)
	_, keyErr := os.Stat(keyPath)
	if (certErr == nil) != (keyErr == nil) {
		return nil, fmt.Errorf("read certificate authority: only one of %q and %q is there; restore the other from a backup, or remove both, so that the server creates new ones", certPath, keyPath)
	}
	template := &x509.Certificate{
		Subject:               pkix.Name{CommonName: commonName},
		NotBefore:             now.Add(-backdate),
		NotAfter:              now.Add(authorityLifetime),
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature | x509.KeyUsageKeyEncipherment,
		BasicConstraintsValid: true,
		IsCA:                  true,
	}
	certPEM, keyPEM, err := issue(template, nil)
	if err == nil {
		err = writePair(certPath, keyPath, certPEM, keyPEM)
	}
	if err != nil {
		return nil, fmt.Errorf("create certificate authority %q: %w", certPath, err)
	}
	return parsePair(certPEM, keyPEM)
}

// issue creates a key and a certificate for it. parent signs the certificate; a nil parent makes it self-signed.
func issue(template *x509.Certificate, parent *authority) (certPEM, keyPEM []byte, err error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	if template.SerialNumber, err = rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127)); err != nil {
		return nil, nil, err
	}
	signer, signerCert := crypto.Signer(key), template
	if parent != nil {
		signer, signerCert = parent.key, parent.cert
		if template.NotAfter.After(parent.cert.NotAfter) {
			template.NotAfter = parent.cert.NotAfter
		}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, signerCert, key.Public(), signer)
	if err != nil {
		return nil, nil, err
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER}), nil
}

func readPair(certPath, keyPath string) (*authority, error) {
	certPEM, err := os.ReadFile(certPath)
	if err != nil {
		return nil, err
	}
	keyPEM, err := os.ReadFile(keyPath)
	if err != nil {
		return nil, err
	}
	a, err := parsePair(certPEM, keyPEM)
	if err != nil {
		return nil, fmt.Errorf("%q and %q: %w; restore them from a backup, or remove both, so that the server creates new ones", certPath, keyPath, err)
	}
	return a, nil
}

func parsePair(certPEM, keyPEM []byte) (*authority, error) {
	certBlock, _ := pem.Decode(certPEM)
	keyBlock, _ := pem.Decode(keyPEM)
	if certBlock == nil || keyBlock == nil {
		return nil, errors.New("not PEM")
	}
	cert, err := x509.ParseCertificate(certBlock.Bytes)
	if err != nil {
		return nil, err
	}
	key, err := x509.ParsePKCS8PrivateKey(keyBlock.Bytes)
	if err != nil {
		return nil, err
	}
	signer, ok := key.(crypto.Signer)
	if !ok {
		return nil, fmt.Errorf("a %T cannot sign", key)
	}
	if public, ok := signer.Public().(interface{ Equal(crypto.PublicKey) bool }); !ok || !public.Equal(cert.PublicKey) {
		return nil, errors.New("the key is not the certificate's")
	}
	return &authority{cert: cert, certPEM: certPEM, key: signer}, nil
}

// writePair writes the key first, because a certificate without its key would count as a damaged pair.
func writePair(certPath, keyPath string, certPEM, keyPEM []byte) error {
	if err := atomicfile.Write(keyPath, keyPEM, 0o600); err != nil {
		return err
	}
	return atomicfile.Write(certPath, certPEM, 0o644)
}
