//! Counts allocations while a stream is decoded: reads the body of a reply from standard input, and
//! prints how many events and allocations there were.

use posse::model::sse::Events;
use posse::model::wire::Wire;
use posse::protocol::{Delta, Price};
use std::alloc::{GlobalAlloc, Layout};
use std::error::Error;
use std::io::Read;
use std::sync::atomic::{AtomicU64, Ordering};

/// The most bytes that a read from the network returns.
const PIECE: usize = 16 << 10;

struct Counting;

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);
static BYTES: AtomicU64 = AtomicU64::new(0);

#[expect(unsafe_code, reason = "an allocator cannot be written otherwise; it only counts")]
// SAFETY: the allocator below does all the work.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        BYTES.fetch_add(layout.size() as u64, Ordering::Relaxed);
        // SAFETY: as the caller promises.
        unsafe { mimalloc::MiMalloc.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: as the caller promises.
        unsafe { mimalloc::MiMalloc.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        BYTES.fetch_add(size.saturating_sub(layout.size()) as u64, Ordering::Relaxed);
        // SAFETY: as the caller promises.
        unsafe { mimalloc::MiMalloc.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

#[expect(clippy::print_stdout, reason = "a program for a pipe")]
fn main() -> Result<(), Box<dyn Error + Send + Sync>> {
    let wire: Wire = serde_json::from_str(&std::env::args().nth(1).ok_or("give the wire")?)?;
    let mut body = Vec::new();
    std::io::stdin().read_to_end(&mut body)?;
    let listen = |delta: Delta| drop(delta);
    let before = (ALLOCATIONS.load(Ordering::Relaxed), BYTES.load(Ordering::Relaxed));
    let (mut events, mut decoder, mut count) = (Events::default(), wire.decoder(), 0_u64);
    for piece in body.chunks(PIECE) {
        events.push(piece);
        while let Some(event) = events.next()? {
            count += 1;
            decoder.event(&event, &listen).map_err(|fault| fault.reason)?;
        }
    }
    let reply = decoder.finish(&Price::default()).map_err(|fault| fault.reason)?;
    let allocations = ALLOCATIONS.load(Ordering::Relaxed) - before.0;
    let bytes = BYTES.load(Ordering::Relaxed) - before.1;
    if reply.message.text().is_empty() {
        return Err("nothing was said".into());
    }
    println!("{{\"events\":{count},\"allocations\":{allocations},\"bytes\":{bytes}}}");
    Ok(())
}
