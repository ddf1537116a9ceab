//! Probes of sockets. They use system calls, because confinements often miss what the standard
//! library does not offer.

#![expect(unsafe_code, reason = "these sockets are not offered by any safe interface")]

use super::inside::Stage;
use libc::{c_int, sockaddr_in, socklen_t};
use std::io::{self, Write};
use std::mem::size_of;
use std::net::TcpStream;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixStream};

fn socket(family: c_int, kind: c_int, protocol: c_int) -> io::Result<OwnedFd> {
    // SAFETY: the call takes numbers only.
    let number = unsafe { libc::socket(family, kind, protocol) };
    if number < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptor is new, so nobody else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(number) })
}

fn done(result: isize) -> io::Result<()> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

fn local_host(port: u16) -> sockaddr_in {
    let address = u32::from_ne_bytes([127, 0, 0, 1]);
    sockaddr_in {
        sin_family: libc::AF_INET as _,
        sin_port: port.to_be(),
        sin_addr: libc::in_addr { s_addr: address },
        sin_zero: [0; 8],
    }
}

const SIZE: socklen_t = size_of::<sockaddr_in>() as socklen_t;

pub(super) fn connect(stage: &Stage) -> io::Result<()> {
    TcpStream::connect(("127.0.0.1", stage.port))?.write_all(b"TCP connect")
}

fn send(socket: &OwnedFd, text: &[u8], flags: c_int, port: u16) -> io::Result<()> {
    let address = local_host(port);
    // SAFETY: text and address live until the call returns, and their sizes are theirs.
    done(unsafe {
        libc::sendto(
            socket.as_raw_fd(),
            text.as_ptr().cast(),
            text.len(),
            flags,
            (&raw const address).cast(),
            SIZE,
        )
    })
}

pub(super) fn fast_open(stage: &Stage) -> io::Result<()> {
    let socket = socket(libc::AF_INET, libc::SOCK_STREAM, 0)?;
    send(&socket, b"TCP fast open", libc::MSG_FASTOPEN, stage.port)
}

pub(super) fn multipath(stage: &Stage) -> io::Result<()> {
    let socket = socket(libc::AF_INET, libc::SOCK_STREAM, libc::IPPROTO_MPTCP)?;
    let address = local_host(stage.port);
    // SAFETY: the address lives until the call returns, and its size is its own.
    let connected = unsafe { libc::connect(socket.as_raw_fd(), (&raw const address).cast(), SIZE) };
    done(connected as isize)?;
    super::kernel::write_to(socket.as_raw_fd(), b"MPTCP connect")
}

/// The network that this process is in.
pub(super) fn own() -> Option<std::path::PathBuf> {
    std::fs::read_link("/proc/self/ns/net").ok()
}

/// An error if no process outside can reach this listener.
fn in_the_same_network(stage: &Stage) -> io::Result<()> {
    match own().is_some() && own() == stage.network {
        true => Ok(()),
        false => Err(io::ErrorKind::NetworkUnreachable.into()),
    }
}

pub(super) fn listen(stage: &Stage) -> io::Result<()> {
    in_the_same_network(stage)?;
    std::net::TcpListener::bind("127.0.0.1:0").map(|_| ())
}

pub(super) fn listen_unbound(stage: &Stage) -> io::Result<()> {
    in_the_same_network(stage)?;
    let socket = socket(libc::AF_INET, libc::SOCK_STREAM, 0)?;
    // SAFETY: the call takes numbers only.
    done(unsafe { libc::listen(socket.as_raw_fd(), 1) } as isize)
}

pub(super) fn datagram(stage: &Stage) -> io::Result<()> {
    let socket = socket(libc::AF_INET, libc::SOCK_DGRAM, 0)?;
    send(&socket, b"UDP send", 0, stage.datagrams)
}

pub(super) fn raw(_: &Stage) -> io::Result<()> {
    socket(libc::AF_INET, libc::SOCK_RAW, libc::IPPROTO_ICMP).map(|_| ())
}

pub(super) fn packet(_: &Stage) -> io::Result<()> {
    socket(libc::AF_PACKET, libc::SOCK_RAW, 0).map(|_| ())
}

pub(super) fn netlink(_: &Stage) -> io::Result<()> {
    socket(libc::AF_NETLINK, libc::SOCK_RAW, 0).map(|_| ())
}

pub(super) fn vsock(_: &Stage) -> io::Result<()> {
    socket(libc::AF_VSOCK, libc::SOCK_STREAM, 0).map(|_| ())
}

pub(super) fn local(stage: &Stage) -> io::Result<()> {
    UnixStream::connect(&stage.socket).map(|_| ())
}

pub(super) fn local_abstract(stage: &Stage) -> io::Result<()> {
    UnixStream::connect_addr(&SocketAddr::from_abstract_name(&stage.word)?).map(|_| ())
}
