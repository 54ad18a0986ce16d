//! Connections: a thread each, ended with the server.

use std::io::{self, BufReader, BufWriter};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// A listening loopback port whose connections end when it is dropped.
#[derive(Debug)]
pub struct Server {
    address: SocketAddr,
    state: Arc<State>,
    accepting: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct State {
    closing: AtomicBool,
    open: Mutex<Vec<TcpStream>>,
}

/// Lets the thread of a connection sleep without outliving the server.
#[derive(Debug, Clone)]
pub struct Closing(Arc<State>);

impl Closing {
    /// Sleeps for so long or until the server goes; whether it goes.
    pub fn sleep(&self, time: Duration) -> bool {
        let end = Instant::now() + time;
        while Instant::now() < end && !self.0.closing.load(Ordering::Relaxed) {
            thread::sleep(Duration::from_millis(10).min(end - Instant::now()));
        }
        self.0.closing.load(Ordering::Relaxed)
    }
}

impl Server {
    /// Listens on a free port and runs `serve` for each connection.
    pub fn start<F>(serve: F) -> Server
    where
        F: Fn(TcpStream, Closing) -> io::Result<()> + Send + Sync + 'static,
    {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a free loopback port");
        let address = listener.local_addr().expect("the port just bound");
        let state = Arc::new(State::default());
        let serve = Arc::new(serve);
        let accepting = thread::spawn({
            let state = Arc::clone(&state);
            move || {
                for stream in listener.incoming().flatten() {
                    if state.closing.load(Ordering::Relaxed) {
                        return;
                    }
                    state.remember(&stream);
                    let (serve, closing) = (Arc::clone(&serve), Closing(Arc::clone(&state)));
                    // A broken connection is the peer's business, or the script's.
                    thread::spawn(move || serve(stream, closing).ok());
                }
            }
        });
        Server {
            address,
            state,
            accepting: Some(accepting),
        }
    }

    /// The port.
    pub fn port(&self) -> u16 {
        self.address.port()
    }
}

impl State {
    fn remember(&self, stream: &TcpStream) {
        if let Ok(copy) = stream.try_clone() {
            let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
            open.retain(|stream| stream.peer_addr().is_ok());
            open.push(copy);
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.state.closing.store(true, Ordering::Relaxed);
        let open = self.state.open.lock().unwrap_or_else(PoisonError::into_inner);
        for stream in open.iter() {
            stream.shutdown(Shutdown::Both).ok();
        }
        drop(open);
        // One last connection lets the accepting thread see the flag.
        TcpStream::connect(self.address).ok();
        if let Some(accepting) = self.accepting.take() {
            accepting.join().ok();
        }
    }
}

/// The two halves of a connection, buffered.
pub fn halves(stream: &TcpStream) -> io::Result<(BufReader<TcpStream>, BufWriter<TcpStream>)> {
    stream.set_nodelay(true)?;
    Ok((
        BufReader::new(stream.try_clone()?),
        BufWriter::new(stream.try_clone()?),
    ))
}

/// Makes the close of this connection a reset, as a broken network looks.
pub fn reset(stream: &TcpStream) -> io::Result<()> {
    rustix::net::sockopt::set_socket_linger(stream, Some(Duration::ZERO))?;
    stream.shutdown(Shutdown::Both).ok();
    Ok(())
}
