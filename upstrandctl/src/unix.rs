//! HTTP over a unix socket, as a connector of ureq.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::mpsc;
use std::thread;

use ureq::config::Config;
use ureq::http::Uri;
use ureq::unversioned::resolver::{ResolvedSocketAddrs, Resolver};
use ureq::unversioned::transport::{
    Buffers, ConnectionDetails, Connector, LazyBuffers, NextTimeout, Transport,
};
use ureq::Error;

/// Connects to one socket, whatever the URL's host is.
#[derive(Debug)]
pub struct UnixConnector {
    pub socket: PathBuf,
}

impl Connector for UnixConnector {
    type Out = UnixTransport;

    fn connect(
        &self,
        details: &ConnectionDetails<'_>,
        _chained: Option<()>,
    ) -> Result<Option<UnixTransport>, Error> {
        let timeout = details.timeout;
        let stream = match timeout.not_zero() {
            None => UnixStream::connect(&self.socket)?,
            // connect() waits without end while the listener's queue is full, and std knows no limit.
            Some(limit) => {
                let socket = self.socket.clone();
                let (sender, receiver) = mpsc::channel();
                thread::Builder::new().spawn(move || sender.send(UnixStream::connect(socket)))?;
                receiver
                    .recv_timeout(*limit)
                    .map_err(|_| Error::Timeout(timeout.reason))??
            }
        };
        let (input, output) = (
            details.config.input_buffer_size(),
            details.config.output_buffer_size(),
        );
        Ok(Some(UnixTransport {
            stream,
            buffers: LazyBuffers::new(input, output),
        }))
    }
}

/// A connection.
#[derive(Debug)]
pub struct UnixTransport {
    stream: UnixStream,
    buffers: LazyBuffers,
}

impl Transport for UnixTransport {
    fn buffers(&mut self) -> &mut dyn Buffers {
        &mut self.buffers
    }

    fn transmit_output(&mut self, amount: usize, timeout: NextTimeout) -> Result<(), Error> {
        self.stream
            .set_write_timeout(timeout.not_zero().map(|limit| *limit))?;
        let output = self.buffers.output().get(..amount).unwrap_or_default();
        let sent = self.stream.write_all(output);
        sent.map_err(|error| or_timeout(error, timeout))
    }

    fn await_input(&mut self, timeout: NextTimeout) -> Result<bool, Error> {
        self.stream
            .set_read_timeout(timeout.not_zero().map(|limit| *limit))?;
        let read = self.stream.read(self.buffers.input_append_buf());
        let amount = read.map_err(|error| or_timeout(error, timeout))?;
        self.buffers.input_appended(amount);
        Ok(amount > 0)
    }

    fn is_open(&mut self) -> bool {
        // No connection is used twice.
        false
    }
}

fn or_timeout(error: io::Error, timeout: NextTimeout) -> Error {
    match error.kind() {
        ErrorKind::WouldBlock | ErrorKind::TimedOut => Error::Timeout(timeout.reason),
        _ => error.into(),
    }
}

/// There is nothing to look up, but ureq wants an address.
#[derive(Debug)]
pub struct NoResolver;

impl Resolver for NoResolver {
    fn resolve(
        &self,
        _uri: &Uri,
        _config: &Config,
        _timeout: NextTimeout,
    ) -> Result<ResolvedSocketAddrs, Error> {
        let mut addresses = self.empty();
        addresses.push(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)));
        Ok(addresses)
    }
}
