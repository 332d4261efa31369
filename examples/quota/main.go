// Command quota is a web server of which any number of instances let each user in so
// often in all, and not so often each. Refused requests use nothing up, and are told
// when to come back.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/dibslock/dibs"
	"github.com/dibslock/dibs/examples/internal/app"
)

var (
	listen = flag.String("listen", "127.0.0.1:0", "`address` to serve at")
	n      = flag.Int("n", 5, "how many requests a user has ...")
	per    = flag.Duration("per", time.Minute, "... in this time")
)

func main() { app.Main(run) }

func run(ctx context.Context, c *dibs.Client) error {
	ln, err := net.Listen("tcp", *listen)
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.Handle("GET /{user}", limited(c, http.HandlerFunc(hello)))
	s := &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	context.AfterFunc(ctx, func() { s.Close() })
	fmt.Println("http://" + ln.Addr().String())
	if err := s.Serve(ln); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

func hello(w http.ResponseWriter, r *http.Request) {
	fmt.Fprintf(w, "hello, %s\n", r.PathValue("user"))
}

// limited lets each user's requests through at the rate that the user has.
func limited(c *dibs.Client, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, err := c.Limit("requests/"+r.PathValue("user"), *n, *per).Take(r.Context())
		if limit, ok := errors.AsType[*dibs.LimitedError](err); ok {
			w.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(limit.RetryAfter.Seconds()))))
			http.Error(w, "too many requests", http.StatusTooManyRequests)
			return
		}
		if err != nil {
			http.Error(w, "the limit can't be told", http.StatusServiceUnavailable)
			return
		}
		next.ServeHTTP(w, r)
	})
}
