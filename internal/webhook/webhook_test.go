package webhook

import (
	"bytes"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"
)

func TestAllowedAddresses(t *testing.T) {
	c := &Client{Allow: []netip.Prefix{netip.MustParsePrefix("10.1.0.0/16")}}
	for address, want := range map[string]bool{
		"93.184.216.34": true, "2606:2800:220:1::1": true, "10.1.2.3": true, "::ffff:10.1.2.3": true,
		"127.0.0.1": false, "::1": false, "::ffff:127.0.0.1": false, "169.254.169.254": false, "fe80::1": false, "fe80::1%eth0": false,
		"10.0.0.1": false, "172.16.0.1": false, "192.168.1.1": false, "fd00::1": false, "fd00:ec2::254": false, "100.100.100.200": false,
		"0.0.0.0": false, "::": false, "224.0.0.1": false, "ff02::1": false, "255.255.255.255": false, "198.18.0.1": false, "192.0.0.192": false,
		"::127.0.0.1": false, "::93.184.216.34": false, "::ffff:0:127.0.0.1": false, "::ffff:0:93.184.216.34": false,
		"64:ff9b::a9fe:a9fe": false, "2002:7f00:1::": false, "2001::1": false,
	} {
		if got := c.allows(netip.MustParseAddr(address)); got != want {
			t.Errorf("%s: allowed %t, want %t", address, got, want)
		}
	}
}

// receiver starts an HTTPS server. It returns its address with a secret path, and its certificate.
func receiver(t *testing.T, h http.HandlerFunc) (string, []byte) {
	t.Helper()
	s := httptest.NewTLSServer(h)
	t.Cleanup(func() { s.CloseClientConnections(); s.Close() })
	return s.URL + "/secret-path?token=secret-token", pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
}

var local = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}

func TestRequest(t *testing.T) {
	var got *http.Request
	var body []byte
	address, ca := receiver(t, func(w http.ResponseWriter, r *http.Request) {
		got = r
		body, _ = io.ReadAll(r.Body)
		w.WriteHeader(http.StatusAccepted)
	})
	t.Setenv("HTTPS_PROXY", "http://127.0.0.1:1") // the client must not use it
	c := &Client{Allow: local}
	code, err := c.Send(t.Context(), Request{URL: address, Header: http.Header{"Content-Type": {"text/x"}, "Authorization": {"Bearer x"}}, Body: []byte("hello"), CABundle: ca})
	if err != nil || code != http.StatusAccepted {
		t.Fatalf("HTTP %d, %v", code, err)
	}
	if got.Method != http.MethodPost || string(body) != "hello" || got.Header.Get("Authorization") != "Bearer x" || got.Header.Get("Content-Type") != "text/x" {
		t.Errorf("%s %q with %v", got.Method, body, got.Header)
	}
}

func TestFailuresOfReceivers(t *testing.T) {
	reached := false
	elsewhere, _ := receiver(t, func(http.ResponseWriter, *http.Request) { reached = true })
	for name, tc := range map[string]struct {
		answer http.HandlerFunc
		allow  []netip.Prefix
		noCA   bool
		want   Kind
		code   int
	}{
		"a status of 500":   {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(500) }, local, false, Failed, 500},
		"too many requests": {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(429) }, local, false, Failed, 429},
		"no such path":      {func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "secret answer", 404) }, local, false, Rejected, 404},
		"a redirect": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, elsewhere, http.StatusTemporaryRedirect)
		}, local, false, Redirected, 307},
		"no answer":                     {hang, local, false, TimedOut, 0},
		"endless headers":               {endlessHeaders, local, false, Unreachable, 0},
		"a closed connection":           {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, local, false, Unreachable, 0},
		"another certificate":           {nil, local, true, Untrusted, 0},
		"an address that is not public": {func(http.ResponseWriter, *http.Request) { t.Error("the request was sent") }, nil, false, Refused, 0},
	} {
		t.Run(name, func(t *testing.T) {
			address, ca := receiver(t, tc.answer)
			if tc.noCA {
				ca = nil
			}
			c := &Client{Allow: tc.allow, Timeout: time.Second}
			_, err := c.Send(t.Context(), Request{URL: address, CABundle: ca, Header: http.Header{"Authorization": {"secret-token"}}})
			var failure *Error
			if !errors.As(err, &failure) || failure.Kind != tc.want || failure.Code != tc.code {
				t.Fatalf("error %#v, want %s with HTTP %d", err, tc.want, tc.code)
			}
			if strings.Contains(err.Error(), "secret") || strings.Contains(err.Error(), "127.0.0.1") {
				t.Errorf("the error has the address, a header or the response: %s", err)
			}
		})
	}
	if reached {
		t.Error("the client followed a redirect")
	}
}

// hang answers later than a client waits.
func hang(_ http.ResponseWriter, r *http.Request) {
	select {
	case <-r.Context().Done():
	case <-time.After(5 * time.Second):
	}
}

func endlessHeaders(w http.ResponseWriter, _ *http.Request) {
	conn, to, err := w.(http.Hijacker).Hijack()
	if err != nil {
		return
	}
	defer conn.Close()
	fmt.Fprint(to, "HTTP/1.1 200 OK\r\n")
	for range 10_000 {
		fmt.Fprintf(to, "X-Long: %s\r\n", strings.Repeat("x", 1000))
		if to.Flush() != nil {
			return
		}
	}
}

// TestEndlessResponse expects Send not to read the body of a response.
func TestEndlessResponse(t *testing.T) {
	ended := make(chan struct{})
	address, ca := receiver(t, func(w http.ResponseWriter, _ *http.Request) {
		defer close(ended)
		page := bytes.Repeat([]byte("x"), 64<<10)
		for {
			if _, err := w.Write(page); err != nil {
				return
			}
		}
	})
	c := &Client{Allow: local}
	if code, err := c.Send(t.Context(), Request{URL: address, CABundle: ca}); err != nil || code != 200 {
		t.Errorf("HTTP %d, %v", code, err)
	}
	select {
	case <-ended:
	case <-time.After(10 * time.Second):
		t.Error("the connection of an endless response stays open")
	}
}

func TestCheckURL(t *testing.T) {
	for address, ok := range map[string]bool{
		"https://example.com/hook": true, "https://example.com:8443": true, "https://[2606::1]/x?y=z": true,
		"http://example.com": false, "https://user:pass@example.com": false, "https://user@example.com": false, "https://": false, "https:example.com": false,
		"ftp://example.com": false, "https://example.com/#x": false, "example.com": false, "https://exa mple.com": false, "": false,
	} {
		err := CheckURL(address)
		if (err == nil) != ok {
			t.Errorf("%q: %v", address, err)
		}
		if err != nil && strings.Contains(err.Error(), "example") {
			t.Errorf("the error has the address: %s", err)
		}
	}
}

func TestCheckHeaderName(t *testing.T) {
	for name, ok := range map[string]bool{
		"Authorization": true, "X-Api-Key": true, "Host": false, "content-length": false, "Webhook-Signature": false, "a b": false, "": false, "x\r\ny": false, "Transfer-Encoding": false,
	} {
		if err := CheckHeaderName(name); (err == nil) != ok {
			t.Errorf("%q: %v", name, err)
		}
	}
}

func TestAHeaderOfTwoLinesIsRefused(t *testing.T) {
	c := &Client{Allow: local}
	_, err := c.Send(t.Context(), Request{URL: "https://127.0.0.1:1", Header: http.Header{"Authorization": {"x\r\nHost: evil"}}})
	var failure *Error
	if !errors.As(err, &failure) || failure.Kind != Refused {
		t.Errorf("error %v, want Refused", err)
	}
}

// TestSignature has the example of the specification of Standard Webhooks.
func TestSignature(t *testing.T) {
	header := http.Header{}
	err := Sign(header, []byte("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"), "msg_p5jXN8AQM9LWM0D4loKWxJek", time.Unix(1614265330, 0), []byte(`{"test": 2432232314}`))
	if err != nil {
		t.Fatal(err)
	}
	if got, want := header.Get(HeaderSignature), "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="; got != want {
		t.Errorf("signature %q, want %q", got, want)
	}
	for _, key := range []string{"short", "whsec_?", "whsec_YQ=="} {
		if err := Sign(header, []byte(key), "id", time.Now(), nil); err == nil || strings.Contains(err.Error(), key) {
			t.Errorf("key %q: %v", key, err)
		}
	}
}
