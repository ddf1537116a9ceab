//! A C library with a Makefile and documents.

use super::{Asked, Repository, place};

pub fn repository() -> Repository {
    Repository { name: "c-library", files: FILES, commits: &[], asked: asked() }
}

const FILES: &[(&str, &str)] = &[
    (
        "README",
        "tinyring - a ring buffer of bytes for small machines\n\nNo allocation after start, no locks for one reader and one writer.\n\nTo build the library:   make\nTo run the tests:       make test\nTo install it:          make install PREFIX=/usr/local\n",
    ),
    (
        "Makefile",
        "CC ?= cc\nCFLAGS += -std=c11 -Wall -Wextra -Iinclude\nPREFIX ?= /usr/local\n\nlibtinyring.a: src/ring.o src/crc.o\n\tar rcs $@ $^\n\ntest: tests/ring_test\n\t./tests/ring_test\n\ntests/ring_test: tests/ring_test.c libtinyring.a\n\t$(CC) $(CFLAGS) -o $@ $^\n\ninstall: libtinyring.a\n\tinstall -m 644 $< $(PREFIX)/lib\n\nclean:\n\trm -f src/*.o libtinyring.a tests/ring_test\n",
    ),
    (
        "include/tinyring.h",
        r#"#ifndef TINYRING_H
#define TINYRING_H

#include <stddef.h>
#include <stdint.h>

/* Bytes that fit into a ring at most. */
#define RING_MAX_CAPACITY 65536

enum ring_status {
    RING_OK,
    RING_FULL,
    RING_EMPTY,
};

typedef struct ring {
    uint8_t *bytes;
    size_t capacity;
    size_t head;
    size_t tail;
} ring_t;

/* Makes a ring over memory of the caller. */
void ring_init(ring_t *ring, uint8_t *memory, size_t capacity);

/* Appends bytes; all or nothing. */
enum ring_status ring_push(ring_t *ring, const uint8_t *bytes, size_t count);

/* Takes up to `count` bytes; returns how many. */
size_t ring_pop(ring_t *ring, uint8_t *out, size_t count);

uint32_t crc32_of(const uint8_t *bytes, size_t count);

#endif
"#,
    ),
    (
        "src/ring.c",
        r#"#include "tinyring.h"

static size_t used(const ring_t *ring)
{
    return ring->head - ring->tail;
}

void ring_init(ring_t *ring, uint8_t *memory, size_t capacity)
{
    ring->bytes = memory;
    ring->capacity = capacity;
    ring->head = ring->tail = 0;
}

enum ring_status ring_push(ring_t *ring, const uint8_t *bytes, size_t count)
{
    if (count > ring->capacity - used(ring))
        return RING_FULL;
    /* TODO: copy in two pieces with memcpy instead of byte by byte */
    for (size_t i = 0; i < count; i++)
        ring->bytes[(ring->head + i) % ring->capacity] = bytes[i];
    ring->head += count;
    return RING_OK;
}

size_t ring_pop(ring_t *ring, uint8_t *out, size_t count)
{
    size_t available = used(ring);
    if (count > available)
        count = available;
    for (size_t i = 0; i < count; i++)
        out[i] = ring->bytes[(ring->tail + i) % ring->capacity];
    ring->tail += count;
    return count;
}
"#,
    ),
    (
        "src/crc.c",
        r#"#include "tinyring.h"

#define POLYNOMIAL 0xEDB88320u

/* The usual CRC-32, bit by bit: slow and small. */
uint32_t crc32_of(const uint8_t *bytes, size_t count)
{
    uint32_t crc = ~0u;
    for (size_t i = 0; i < count; i++) {
        crc ^= bytes[i];
        for (int bit = 0; bit < 8; bit++)
            crc = (crc >> 1) ^ (POLYNOMIAL & -(crc & 1));
    }
    return ~crc;
}
"#,
    ),
    (
        "tests/ring_test.c",
        r#"#include "tinyring.h"
#include <assert.h>

static void test_push_refuses_what_does_not_fit(void)
{
    uint8_t memory[4];
    ring_t ring;
    ring_init(&ring, memory, sizeof memory);
    assert(ring_push(&ring, (const uint8_t *)"12345", 5) == RING_FULL);
}

static void test_crc_of_nothing_is_zero(void)
{
    assert(crc32_of(0, 0) == 0);
}

int main(void)
{
    test_push_refuses_what_does_not_fit();
    test_crc_of_nothing_is_zero();
    return 0;
}
"#,
    ),
    (
        "docs/design.md",
        r#"# Design

## Memory

The caller owns the memory. `ring_init` stores a pointer and never frees it.

## Concurrency

One thread may push while another pops: each side writes only its own index. More than one writer
needs a lock around `ring_push`.

## Checksums

Frames carry a CRC-32 so that a torn write is noticed after a reset.
"#,
    ),
    (
        "docs/porting.md",
        "# Porting\n\nOn machines without 32-bit stores, guard `head` and `tail` by disabling interrupts.\n\n## Endianness\n\nThe checksum is written in little endian.\n",
    ),
    (
        "tools/bench.sh",
        "#!/bin/sh\n# Measures pushes per second.\nset -eu\n\nbuild_bench() {\n    cc -O2 -Iinclude -o /tmp/bench tools/bench.c libtinyring.a\n}\n\nbuild_bench\n/tmp/bench \"${ROUNDS:-1000000}\"\n",
    ),
    (
        "CHANGELOG.md",
        "# Changes\n\n## 0.3\n\n- ring_pop takes what there is instead of failing.\n\n## 0.2\n\n- CRC-32.\n",
    ),
];

fn asked() -> Vec<Asked> {
    vec![
        Asked::new("where is ring_push implemented?", [place("src/ring.c", "ring_push(ring_t")]),
        Asked::new(
            "What is RING_MAX_CAPACITY",
            [place("include/tinyring.h", "#define RING_MAX_CAPACITY")],
        ),
        Asked::new("Is it safe with more than one writer thread?", [place("docs/design.md", "")]),
        Asked::new(
            "how do I compile the library",
            [place("README", "make"), place("Makefile", "libtinyring.a:")],
        ),
        Asked::new(
            "what's ring_t",
            [
                place("include/tinyring.h", "ring_t;"),
                place("include/tinyring.h", "typedef struct ring"),
            ],
        ),
        Asked::new("which test covers crc32_of", [place("tests/ring_test.c", "crc")]),
        Asked::new(
            "where's the checksum computed",
            [place("src/crc.c", ""), place("include/tinyring.h", "crc32_of")],
        ),
        Asked::new("what does this library do", [place("README", "")]),
        Asked::new("which files talk about endianness?", [place("docs/porting.md", "")]),
        Asked::new(
            "who owns the memory of a ring",
            [
                place("docs/design.md", "Memory"),
                place("docs/design.md", "owns the memory"),
                place("include/tinyring.h", "memory of the caller"),
            ],
        ),
        Asked::new("what does build_bench do", [place("tools/bench.sh", "build_bench() {")]),
        Asked::new("What changed in version 0.3?", [place("CHANGELOG.md", "")]),
        Asked::new(
            "run the tests: how?",
            [place("README", "make test"), place("Makefile", "test:")],
        ),
        Asked::new(
            "ring_init在哪里定义？",
            [place("src/ring.c", "void ring_init"), place("include/tinyring.h", "void ring_init")],
        ),
    ]
}
