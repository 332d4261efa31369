package fence_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/dibslock/dibs"
	"github.com/dibslock/dibs/fence"
	"github.com/dibslock/dibs/memlock"
)

// A holder that was succeeded finds its write refused, whatever it believes.
func ExampleMemory() {
	ctx := context.Background()
	c, err := dibs.New(memlock.New(memlock.Options{}), nil)
	if err != nil {
		panic(err)
	}
	defer c.Close(ctx)
	old, _ := c.Mutex("balance").Lock(ctx)
	// It freezes here, and an operator gives the lock to another.
	_ = c.Revoke(ctx, dibs.Revocation{Name: "balance", Token: old.Token(), Now: true})
	successor, _ := c.Mutex("balance").Lock(ctx)
	defer successor.Release(ctx)

	var guard fence.Memory
	balance := 100
	add := func(lease fence.Fenced, n int) error {
		return guard.Do(ctx, lease, func() error {
			balance += n
			return nil
		})
	}
	fmt.Println(add(successor, 50))
	fmt.Println(errors.Is(add(old, -30), fence.ErrStale))
	fmt.Println(balance)
	// Output:
	// <nil>
	// true
	// 150
}

// The client sends its lease's token, and the server refuses an older one.
func ExampleGate() {
	gate := &fence.Gate{Name: func(r *http.Request) string { return "orders/" + r.PathValue("id") }}
	mux := http.NewServeMux()
	mux.Handle("PUT /orders/{id}", gate.Wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		lease, _ := fence.FromContext(r.Context()) // for the guard of the database
		fmt.Fprint(w, "written under ", lease.Fence())
	})))
	server := httptest.NewServer(mux)
	defer server.Close()

	client := &http.Client{Transport: &fence.Transport{}}
	for _, lease := range []fence.Fenced{fence.Of("orders/7", 42), fence.Of("orders/7", 41), fence.Of("orders/8", 43)} {
		ctx := fence.NewContext(context.Background(), lease)
		req, _ := http.NewRequestWithContext(ctx, http.MethodPut, server.URL+"/orders/7", nil)
		resp, err := client.Do(req)
		if err != nil {
			panic(err)
		}
		fmt.Println(resp.StatusCode, fence.ResponseError(resp))
		resp.Body.Close()
	}
	// Output:
	// 200 <nil>
	// 412 stale fence: refused: "orders/7" was granted again since: offered 41, and 42 has been seen
	// 412 <nil>
}
