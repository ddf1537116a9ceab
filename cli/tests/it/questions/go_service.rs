//! A service in Go: a queue of messages.

use super::{Asked, Repository, ask};

pub fn repository() -> Repository {
    Repository { name: "go-service", files: FILES, commits: &[], asked: asked() }
}

const FILES: &[(&str, &str)] = &[
    (
        "go.mod",
        "module example.org/pigeon\n\ngo 1.23\n\nrequire (\n\tgithub.com/go-chi/chi/v5 v5.1.0\n\tgithub.com/jackc/pgx/v5 v5.7.1\n)\n\nrequire golang.org/x/sync v0.8.0 // indirect\n",
    ),
    ("go.sum", "github.com/go-chi/chi/v5 v5.1.0 h1:abc=\ngithub.com/jackc/pgx/v5 v5.7.1 h1:def=\n"),
    (
        "README.md",
        r#"Pigeon
======

A small queue that delivers messages to webhooks, at least once.

Build it with `make build`; the binary is `bin/pigeond`. Run `make check` before you push.
"#,
    ),
    (
        "Makefile",
        "BINARY := bin/pigeond\n\n.PHONY: build check run\n\nbuild: ## compile the daemon\n\tgo build -o $(BINARY) ./cmd/pigeond\n\ncheck: ## vet and test\n\tgo vet ./...\n\tgo test -race ./...\n\nrun: build\n\t$(BINARY) -listen :9000\n",
    ),
    (
        "cmd/pigeond/main.go",
        r#"// Command pigeond delivers messages.
package main

import (
	"flag"
	"log"
	"net/http"
	"os"

	"example.org/pigeon/internal/api"
	"example.org/pigeon/internal/queue"
)

func main() {
	listen := flag.String("listen", ":9000", "address to listen on")
	workers := flag.Int("workers", 4, "deliveries at once")
	flag.Parse()

	store, err := queue.OpenPostgres(os.Getenv("PIGEON_DATABASE"))
	if err != nil {
		log.Fatal(err)
	}
	dispatcher := queue.NewDispatcher(store, *workers)
	go dispatcher.Run()
	log.Fatal(http.ListenAndServe(*listen, api.NewHandler(store)))
}
"#,
    ),
    (
        "internal/queue/queue.go",
        r#"// Package queue keeps messages until they are delivered.
package queue

import (
	"errors"
	"time"
)

// ErrEmpty is returned when there is nothing to deliver.
var ErrEmpty = errors.New("queue: empty")

// Message is what is to be delivered, and where.
type Message struct {
	ID       int64
	URL      string
	Body     []byte
	Attempts int
	DueAt    time.Time
}

// Store keeps messages.
type Store interface {
	Push(message Message) error
	Next(now time.Time) (Message, error)
	Acknowledge(id int64) error
}

const maxAttempts = 8
"#,
    ),
    (
        "internal/queue/dispatcher.go",
        r#"package queue

import (
	"bytes"
	"net/http"
	"time"
)

// Dispatcher takes messages from a store and delivers them.
type Dispatcher struct {
	store   Store
	workers int
	client  http.Client
}

// NewDispatcher makes a dispatcher with this many workers.
func NewDispatcher(store Store, workers int) *Dispatcher {
	return &Dispatcher{store: store, workers: workers, client: http.Client{Timeout: 10 * time.Second}}
}

// Run delivers until the program ends.
func (d *Dispatcher) Run() {
	for i := 0; i < d.workers; i++ {
		go d.deliverAll()
	}
}

func (d *Dispatcher) deliverAll() {
	for {
		message, err := d.store.Next(time.Now())
		if err == ErrEmpty {
			time.Sleep(time.Second)
			continue
		}
		if d.deliver(message) == nil {
			_ = d.store.Acknowledge(message.ID)
		} else {
			d.retryLater(message)
		}
	}
}

func (d *Dispatcher) deliver(message Message) error {
	_, err := d.client.Post(message.URL, "application/json", bytes.NewReader(message.Body))
	return err
}

// retryLater puts a message back with a delay that doubles each time. After maxAttempts it is
// dropped.
func (d *Dispatcher) retryLater(message Message) {
	message.Attempts++
	if message.Attempts >= maxAttempts {
		return // FIXME: keep undeliverable messages for inspection
	}
	message.DueAt = time.Now().Add(time.Second << message.Attempts)
	_ = d.store.Push(message)
}
"#,
    ),
    (
        "internal/queue/postgres.go",
        r#"package queue

import (
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
)

// Postgres is a Store in a PostgreSQL database.
type Postgres struct {
	pool *pgxpool.Pool
}

// OpenPostgres connects to the database at this address.
func OpenPostgres(address string) (*Postgres, error) {
	return &Postgres{}, nil
}

const nextMessage = `SELECT id, url, body FROM messages WHERE due_at <= $1 FOR UPDATE SKIP LOCKED LIMIT 1`

func (p *Postgres) Push(message Message) error { return nil }

func (p *Postgres) Next(now time.Time) (Message, error) { return Message{}, ErrEmpty }

func (p *Postgres) Acknowledge(id int64) error { return nil }
"#,
    ),
    (
        "internal/queue/dispatcher_test.go",
        r#"package queue

import "testing"

type memory struct{ pushed []Message }

func (m *memory) Push(message Message) error { m.pushed = append(m.pushed, message); return nil }

func TestRetryLaterCountsAttempts(t *testing.T) {
	store := &memory{}
	dispatcher := &Dispatcher{}
	dispatcher.retryLater(Message{Attempts: 1})
	if len(store.pushed) != 0 {
		t.Fatal("pushed to the wrong store")
	}
}
"#,
    ),
    (
        "internal/api/handler.go",
        r#"// Package api is the HTTP face of the queue.
package api

import (
	"net/http"

	"example.org/pigeon/internal/queue"
	"github.com/go-chi/chi/v5"
)

// NewHandler serves the API on a store.
func NewHandler(store queue.Store) http.Handler {
	router := chi.NewRouter()
	router.Post("/messages", func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") == "" {
			http.Error(w, "a key is needed", http.StatusUnauthorized)
			return
		}
		w.WriteHeader(http.StatusAccepted)
	})
	router.Get("/healthz", func(w http.ResponseWriter, r *http.Request) {})
	return router
}
"#,
    ),
    (
        "migrations/0001_messages.sql",
        "CREATE TABLE messages (\n    id BIGSERIAL PRIMARY KEY,\n    url TEXT NOT NULL,\n    body BYTEA NOT NULL,\n    attempts INT NOT NULL DEFAULT 0,\n    due_at TIMESTAMPTZ NOT NULL\n);\n\nCREATE INDEX messages_due ON messages (due_at);\n",
    ),
    (
        "vendor/github.com/go-chi/chi/v5/mux.go",
        "package chi\n\n// Dispatcher routes.\ntype Dispatcher struct{}\n\nfunc NewRouter() *Mux { return nil }\n",
    ),
    (
        "deploy/pigeon.service",
        "[Unit]\nDescription=Pigeon\n\n[Service]\nExecStart=/usr/bin/pigeond -listen :9000\nRestart=always\n",
    ),
];

fn asked() -> Vec<Asked> {
    vec![
        ask("what does this service do?").says(&["`README.md:4`", "delivers messages to webhooks"]),
        ask("where is retryLater defined")
            .says(&["`internal/queue/dispatcher.go:50`", "> retryLater puts a message back"]),
        ask("explain the Store interface").says(&[
            "`Store` is an interface, defined at `internal/queue/queue.go:22`",
            "> Store keeps messages.",
        ]),
        ask("how do I build it?").says(&["`make build`", "`README.md:6`"]),
        ask("how do I run the tests").says(&["`make check`", "`go test ./...`"]),
        ask("is retryLater tested?")
            .says(&["`internal/queue/dispatcher_test.go:12` in `TestRetryLaterCountsAttempts`"]),
        ask("which go version does it need?").says(&["`go` is 1.23"]),
        ask("what go version is needed?").says(&["`go` is 1.23"]),
        ask("what does it depend on?").says(&["`github.com/go-chi/chi/v5` v5.1.0"]),
        ask("list the FIXMEs").says(&["`internal/queue/dispatcher.go:53`"]),
        ask("how many functions are there?").says(&["functions in"]),
        ask("what happens when the queue is empty?").says(&["`internal/queue/"]),
        ask("what is in internal/queue/?").says(&["`dispatcher.go`", "`postgres.go`"]),
        ask("where is maxAttempts used?").says(&["`internal/queue/dispatcher.go:52`"]),
        ask("what is maxAttempts").says(&["`internal/queue/queue.go:28`"]),
    ]
}
