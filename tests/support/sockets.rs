//! What std's sockets can't do: resets, small buffers, addresses where a connect fails or hangs.

use std::mem::size_of_val;
use std::net::{SocketAddr, TcpStream};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::time::Duration;

fn set<T>(socket: &impl AsRawFd, option: libc::c_int, value: &T) {
    // SAFETY: the descriptor is open, the value is as long as said.
    let rc = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            option,
            std::ptr::from_ref(value).cast(),
            size_of_val(value) as libc::socklen_t,
        )
    };
    assert_eq!(rc, 0, "setsockopt");
}

/// Closes a connection by a reset.
pub fn reset(stream: TcpStream) {
    let linger = libc::linger {
        l_onoff: 1,
        l_linger: 0,
    };
    set(&stream, libc::SO_LINGER, &linger);
}

/// Makes a socket's receive buffer small.
pub fn receive_buffer(socket: &impl AsRawFd, bytes: libc::c_int) {
    set(socket, libc::SO_RCVBUF, &bytes);
}

/// A bound socket that is not connected: an address that no one else gets.
fn bound() -> (OwnedFd, SocketAddr) {
    // SAFETY: plain system calls on a descriptor that is ours; sockaddr_in is plain data.
    unsafe {
        let fd = libc::socket(libc::AF_INET, libc::SOCK_STREAM | libc::SOCK_CLOEXEC, 0);
        assert!(fd >= 0, "socket");
        let fd = OwnedFd::from_raw_fd(fd);
        let mut address: libc::sockaddr_in = std::mem::zeroed();
        address.sin_family = libc::AF_INET as libc::sa_family_t;
        address.sin_addr.s_addr = u32::from_ne_bytes([127, 0, 0, 1]);
        let mut len = size_of_val(&address) as libc::socklen_t;
        let place = std::ptr::from_mut(&mut address).cast();
        assert_eq!(libc::bind(fd.as_raw_fd(), place, len), 0, "bind");
        let rc = libc::getsockname(fd.as_raw_fd(), place, &mut len);
        assert_eq!(rc, 0, "getsockname");
        let port = u16::from_be(address.sin_port);
        (fd, SocketAddr::from(([127, 0, 0, 1], port)))
    }
}

/// A client's socket with a small receive buffer, connected.
pub fn connect_small(port: u16, bytes: libc::c_int) -> TcpStream {
    let (fd, _) = bound();
    // The window is agreed upon when the connection is made.
    receive_buffer(&fd, bytes);
    // SAFETY: as in bound().
    unsafe {
        let mut address: libc::sockaddr_in = std::mem::zeroed();
        address.sin_family = libc::AF_INET as libc::sa_family_t;
        address.sin_addr.s_addr = u32::from_ne_bytes([127, 0, 0, 1]);
        address.sin_port = port.to_be();
        let len = size_of_val(&address) as libc::socklen_t;
        let rc = libc::connect(fd.as_raw_fd(), std::ptr::from_ref(&address).cast(), len);
        assert_eq!(rc, 0, "connect");
    }
    TcpStream::from(fd)
}

/// An address that refuses connections.
pub struct Dead {
    _socket: OwnedFd,
    pub address: String,
}

impl Dead {
    pub fn new() -> Dead {
        let (socket, address) = bound();
        Dead {
            _socket: socket,
            address: address.to_string(),
        }
    }
}

/// An address where a connect hangs: its queue is full and no one takes from it.
pub struct Full {
    _socket: OwnedFd,
    _queued: Vec<TcpStream>,
    pub address: String,
}

impl Full {
    pub fn new() -> Full {
        let (socket, address) = bound();
        // SAFETY: the descriptor is open.
        assert_eq!(unsafe { libc::listen(socket.as_raw_fd(), 0) }, 0, "listen");
        let mut queued = Vec::new();
        while let Ok(stream) = TcpStream::connect_timeout(&address, Duration::from_millis(150)) {
            queued.push(stream);
            assert!(queued.len() < 64, "the queue never fills");
        }
        Full {
            _socket: socket,
            _queued: queued,
            address: address.to_string(),
        }
    }
}
