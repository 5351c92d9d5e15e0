// Command screenshots starts the demo on private servers of its own and writes a
// picture of every page in every look: two languages, three widths, light and dark.
//
// Run it from the root of the repository: go run ./scripts/screenshots [-readme] FOLDER
// With -readme it writes only those few that the documentation shows.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"idemscope/internal/app"
	"idemscope/internal/flow"
)

// shot is one picture to take.
type shot struct {
	name, path, lang, scheme string
	width                    int64
	// window: as much as one window shows, not the whole page.
	window bool
}

// pages are the addresses of the demo's pages, by name; the keys are samples of the demo.
var pages = [][2]string{
	{"home", "?"},
	{"hits", "search?q=SO202501150099"},
	{"key-stuck", "key?type=order_paid&id=SO202501150099&wait=all"},
	{"key-completed", "key?type=order_paid&id=SO202501150001&wait=all"},
	{"key-ran-twice", "key?type=coupon_grant&id=CP-2025-0815&wait=all"},
	{"key-stuck-redis", "key?type=refund&id=RF202501150404&wait=all"},
	{"action", "action?kind=reset-record&type=order_paid&id=SO202501150099"},
	{"action-refused", "action?kind=reset-record&type=order_paid&id=SO202501150001"},
	{"findings", "findings?"}, {"flows", "flows?"}, {"flow", "flows/payments?"}, {"cleanup", "cleanup?"},
	{"doctor", "doctor?"}, {"trace", "trace?"}, {"audit", "audit?"}, {"fault", "key?type=nobody&id=1"},
}

// readme are the pictures of the documentation.
var readme = []shot{
	{"console-home", "?", "en", "light", 1280, true},
	{"console-key-light", "key?type=order_paid&id=SO202501150099&wait=all", "en", "light", 1280, true},
	{"console-key-dark-zh", "key?type=order_paid&id=SO202501150099&wait=all", "zh", "dark", 1280, true},
	{"console-findings", "findings?", "en", "light", 1280, true},
}

func main() {
	few := flag.Bool("readme", false, "only the pictures of the documentation")
	flag.Parse()
	if flag.NArg() != 1 {
		fmt.Fprintln(os.Stderr, "usage: screenshots [-readme] FOLDER")
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, flag.Arg(0), *few); err != nil {
		fmt.Fprintln(os.Stderr, "screenshots:", err)
		os.Exit(1)
	}
}

// run starts the demo, takes the pictures, and stops it.
func run(ctx context.Context, dir string, few bool) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	out, in := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		err := app.Demo(ctx, app.DemoOptions{Listen: "127.0.0.1:0", Program: "idemscope", Language: flow.English, Logger: slog.New(slog.DiscardHandler), Out: in})
		_ = in.CloseWithError(errors.Join(err, io.EOF))
		ended <- err
	}()
	address, err := address(out)
	if err == nil {
		err = settle(ctx, address)
	}
	if err == nil {
		err = take(ctx, address, dir, shots(few))
	}
	cancel()
	return errors.Join(err, <-ended)
}

// address reads where the console is from what the demo prints, and lets it print on.
func address(out io.Reader) (string, error) {
	var said strings.Builder
	part := make([]byte, 4096)
	for {
		n, err := out.Read(part)
		said.Write(part[:n])
		if m := regexp.MustCompile(`Open (http://\S+/)`).FindStringSubmatch(said.String()); m != nil {
			go func() { _, _ = io.Copy(io.Discard, out) }()
			return m[1], nil
		}
		if err != nil {
			return "", fmt.Errorf("the demo did not start: %w", err)
		}
	}
}

// settle waits until the demo has looked for findings and figures.
func settle(ctx context.Context, address string) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	for {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, address+"api/v1/findings", nil)
		if err != nil {
			return err
		}
		reply, err := http.DefaultClient.Do(request)
		if err != nil {
			return fmt.Errorf("wait for findings: %w", err)
		}
		body, err := io.ReadAll(reply.Body)
		_ = reply.Body.Close()
		if err == nil && strings.Count(string(body), `"biz_type"`) >= 5 {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for findings: %w", ctx.Err())
		case <-time.After(time.Second):
		}
	}
}

// shots are all pictures, or those of the documentation.
func shots(few bool) []shot {
	if few {
		return readme
	}
	var all []shot
	for _, p := range pages {
		for _, lang := range []string{"en", "zh"} {
			for _, width := range []int64{1440, 768, 390} {
				for _, scheme := range []string{"light", "dark"} {
					all = append(all, shot{fmt.Sprintf("%s-%s-%d-%s", p[0], lang, width, scheme), p[1], lang, scheme, width, false})
				}
			}
		}
	}
	return all
}

// take writes the pictures.
func take(ctx context.Context, address, dir string, all []shot) error {
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.NoSandbox, chromedp.DisableGPU,
		chromedp.Flag("no-proxy-server", true), chromedp.Flag("disable-dev-shm-usage", true), chromedp.Flag("hide-scrollbars", true))
	allocated, release := chromedp.NewExecAllocator(ctx, options...)
	defer release()
	tab, closeTab := chromedp.NewContext(allocated)
	defer closeTab()
	for _, s := range all {
		picture := chromedp.FullScreenshot(100)
		if s.window {
			picture = chromedp.CaptureScreenshot()
		}
		err := chromedp.Do(tab, chromedp.EmulateViewport(s.width, 800), scheme(s.scheme), chromedp.Navigate(address+s.path+"&lang="+s.lang))
		if err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
		png, err := chromedp.Run(tab, picture)
		if err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
		if err := os.WriteFile(filepath.Join(dir, s.name+".png"), png, 0o644); err != nil {
			return err
		}
	}
	fmt.Printf("%d pictures in %s\n", len(all), dir)
	return nil
}

// scheme makes the browser prefer light or dark pages.
func scheme(name string) chromedp.Action[chromedp.Void] {
	return func(ctx context.Context, tab *chromedp.Target) (chromedp.Void, error) {
		_, err := cdp.Call(ctx, tab, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
			Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: name}},
		})
		return chromedp.Void{}, err
	}
}
