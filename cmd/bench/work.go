package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"time"
)

// transferred is the size of the file that is sent to and fro.
const transferred = 32 << 20

const (
	figureLeftOpen = "import matplotlib.pyplot as plt\nplt.plot([1, 3, 2])\nplt.title('x')\nNone"
	figureByHand   = "import io\n" + figureLeftOpen + "\nplt.savefig(io.BytesIO(), format='png')\nplt.close('all')"
	plotInSession  = "import matplotlib.pyplot as plt\nplt.plot([1, 3, 2])\nplt.savefig('/session/plot.png')\nplt.close('all')"
	plotInArtifact = "import matplotlib.pyplot as plt\nplt.plot([1, 3, 2])\nplt.savefig('/session/artifacts/plot.png')\nplt.close('all')"
)

// work measures what a place to work costs: files in and out, beside what Go's
// own file server and a plain copy to a file do, and a figure that is kept.
func (b *bench) work(ctx context.Context) {
	body := bytes.Repeat([]byte("0123456789abcdef"), transferred/16)
	// Plot after plot is all CPU, and the default share of half a core would be what is timed.
	id, err := b.client.create(ctx, map[string]any{"upload_max_bytes": 2 * transferred, "cpu_percent": 100})
	if err != nil {
		b.report.failed("files", err)
		return
	}
	defer func() { _ = b.client.remove(context.WithoutCancel(ctx), id) }()
	dir, err := os.MkdirTemp("", "bench")
	if err != nil {
		b.report.failed("files", err)
		return
	}
	defer os.RemoveAll(dir)
	plain := httptest.NewServer(plainFiles(dir))
	defer plain.Close()
	peer := newClient(plain.URL, "")
	path := "/sandbox/" + id + "/files/data.bin"
	b.transfer(ctx, "upload, MB/s", func() error { return b.client.upload(ctx, path, body) })
	b.transfer(ctx, "upload to a plain file, MB/s", func() error { return peer.upload(ctx, "/data.bin", body) })
	b.transfer(ctx, "download, MB/s", func() error { return b.client.download(ctx, path, transferred) })
	b.transfer(ctx, "download from http.FileServer, MB/s", func() error { return peer.download(ctx, "/data.bin", transferred) })
	plot := func(code string) func() (time.Duration, error) {
		return b.client.timed(ctx, in(id), code, expect{status: "completed"}.check)
	}
	b.latency(ctx, "a plot that stays in /session", b.size.latency, goal{}, plot(plotInSession))
	b.beside(ctx, "the same kept as an artifact", "that stays", plot(plotInArtifact), plot(plotInSession))
	b.beside(ctx, "a figure left open, which comes back", "saved to PNG in the code, and dropped", b.client.timed(ctx, in(id), figureLeftOpen, hasPNG), plot(figureByHand))
}

// beside adds a row with how many times as long a subject takes as another that it is
// taken beside.
func (b *bench) beside(ctx context.Context, name, other string, subject, with func() (time.Duration, error)) {
	if ctx.Err() != nil {
		return
	}
	progress("%s", name)
	took, ratios, err := inTurn(ctx, b.size.latency, b.size.limit, subject, with)
	if err != nil {
		b.report.failed(name, err)
		return
	}
	b.report.add(row{Name: name, Samples: len(ratios), P50: new(median(took)), P99: new(quantile(took, 0.99)),
		Value: fmt.Sprintf("%.2f of one %s (quartiles %.2f and %.2f)", median(ratios), other, quantile(ratios, 0.25), quantile(ratios, 0.75))})
}

// plainFiles is what a few lines of Go do: PUT copies to a file, GET is FileServer.
func plainFiles(dir string) http.Handler {
	get := http.FileServer(http.Dir(dir))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPut {
			get.ServeHTTP(w, r)
			return
		}
		f, err := os.Create(filepath.Join(dir, filepath.Base(r.URL.Path)))
		if err == nil {
			_, err = io.Copy(f, r.Body)
			_ = f.Close()
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
		}
	})
}

// transfer adds a row with the throughput of f, which moves the file once.
func (b *bench) transfer(ctx context.Context, name string, f func() error) {
	if ctx.Err() != nil {
		return
	}
	progress("%s", name)
	var rates []float64
	for range 1 + b.size.heavy {
		begun := time.Now()
		if err := f(); err != nil {
			b.report.failed(name, err)
			return
		}
		rates = append(rates, transferred/1e6/time.Since(begun).Seconds())
	}
	b.report.add(row{Name: name, Samples: len(rates) - 1, Value: fmt.Sprintf("%.0f", median(rates[1:]))})
}

// upload uploads a file.
func (c *client) upload(ctx context.Context, path string, body []byte) error {
	return c.stream(ctx, http.MethodPut, path, bytes.NewReader(body), nil)
}

// download downloads a file of a size.
func (c *client) download(ctx context.Context, path string, size int64) error {
	var got counter
	err := c.stream(ctx, http.MethodGet, path, nil, &got)
	if err == nil && int64(got) != size {
		err = fmt.Errorf("%d bytes came, not %d", got, size)
	}
	return err
}

type counter int64

func (n *counter) Write(p []byte) (int, error) { *n += counter(len(p)); return len(p), nil }

func (c *client) stream(ctx context.Context, method, path string, body io.Reader, into io.Writer) error {
	req, err := http.NewRequestWithContext(ctx, method, c.base+path, body)
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+c.key)
	resp, err := c.http.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(resp.Body, 300))
		return fmt.Errorf("%s %s: HTTP %d: %s", method, path, resp.StatusCode, text)
	}
	if into == nil {
		into = io.Discard
	}
	_, err = io.CopyBuffer(into, struct{ io.Reader }{resp.Body}, make([]byte, 256<<10))
	return err
}
