//! A proxy before a server: it loses requests and answers, delays, hangs up, and leads elsewhere.

use std::io;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// Passes everything on, to a server at a TCP port, until it is told otherwise. Requests are counted as
/// the pieces that are read of a client: one each while a client sends one after the other.
#[derive(Debug)]
pub struct Proxy {
    port: u16,
    url: String,
    shared: Arc<Shared>,
    accepts: JoinHandle<()>,
}

#[derive(Debug)]
struct Shared {
    target: Mutex<String>,
    /// In how many requests an answer is lost; 0 for none.
    lose_answer_in: AtomicUsize,
    /// In how many requests one is lost itself.
    lose_request_in: AtomicUsize,
    delay: AtomicU64,
    /// How often it has hung up.
    hung_up: watch::Sender<u64>,
}

impl Proxy {
    /// Before the server of a URL `scheme://[login@]host:port…`, within a Tokio runtime.
    ///
    /// # Errors
    /// The URL has no such place, or there is no port.
    pub async fn before(url: &str) -> io::Result<Self> {
        let wrong = || io::Error::new(io::ErrorKind::InvalidInput, "no host and port in the URL");
        let (scheme, rest) = url.split_once("://").ok_or_else(wrong)?;
        let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let (authority, path) = rest.split_at(end);
        let (login, place) = match authority.rsplit_once('@') {
            Some((login, place)) => (format!("{login}@"), place),
            None => (String::new(), authority),
        };
        if !place.contains(':') {
            return Err(wrong());
        }
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let port = listener.local_addr()?.port();
        let shared = Arc::new(Shared {
            target: Mutex::new(place.to_owned()),
            lose_answer_in: AtomicUsize::new(0),
            lose_request_in: AtomicUsize::new(0),
            delay: AtomicU64::new(0),
            hung_up: watch::Sender::new(0),
        });
        let accepts = tokio::spawn(accept(listener, Arc::clone(&shared)));
        let url = format!("{scheme}://{login}127.0.0.1:{port}{path}");
        Ok(Self { port, url, shared, accepts })
    }

    /// Where it listens, on 127.0.0.1.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The server's URL, by way of this.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Passes the next requests on, and hangs up instead of the answer to the `n`-th of them.
    pub fn lose_answer_in(&self, n: usize) {
        self.shared.lose_answer_in.store(n, Ordering::SeqCst);
    }

    /// Passes the next requests on but the `n`-th, at which it hangs up.
    pub fn lose_request_in(&self, n: usize) {
        self.shared.lose_request_in.store(n, Ordering::SeqCst);
    }

    /// Lets every piece wait that long, there and back.
    pub fn delay(&self, delay: Duration) {
        let millis = u64::try_from(delay.as_millis()).unwrap_or(u64::MAX);
        self.shared.delay.store(millis, Ordering::SeqCst);
    }

    /// Hangs up on everybody.
    pub fn hang_up(&self) {
        self.shared.hung_up.send_modify(|times| *times += 1);
    }

    /// Leads to another server of this machine from now on, and hangs up.
    pub fn lead_to(&self, port: u16) {
        *self.shared.target.lock().unwrap_or_else(PoisonError::into_inner) =
            format!("127.0.0.1:{port}");
        self.hang_up();
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.accepts.abort();
        self.hang_up();
    }
}

async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    while let Ok((client, _)) = listener.accept().await {
        let mut hung_up = shared.hung_up.subscribe();
        hung_up.mark_unchanged();
        let shared = Arc::clone(&shared);
        tokio::spawn(async move {
            let target = shared.target.lock().unwrap_or_else(PoisonError::into_inner).clone();
            // When the server is not there, neither is this.
            let Ok(server) = TcpStream::connect(target).await else { return };
            let _ = (client.set_nodelay(true), server.set_nodelay(true));
            tokio::select! {
                () = pass(client, server, &shared) => {}
                _ = hung_up.changed() => {}
            }
        });
    }
}

/// Whether the count has just come to its end.
fn is_due(count: &AtomicUsize) -> bool {
    let counted = count.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |n| n.checked_sub(1));
    counted == Ok(1)
}

async fn pass(mut client: TcpStream, mut server: TcpStream, shared: &Shared) {
    let (mut up, mut down) = (vec![0; 65_536], vec![0; 65_536]);
    let mut loses_answer = false;
    let delay = || async {
        match shared.delay.load(Ordering::SeqCst) {
            0 => {}
            millis => tokio::time::sleep(Duration::from_millis(millis)).await,
        }
    };
    loop {
        tokio::select! {
            read = client.read(&mut up) => match read {
                Ok(n) if n > 0 => {
                    if is_due(&shared.lose_request_in) {
                        return;
                    }
                    loses_answer |= is_due(&shared.lose_answer_in);
                    delay().await;
                    if server.write_all(up.get(..n).unwrap_or_default()).await.is_err() {
                        return;
                    }
                }
                _ => return,
            },
            read = server.read(&mut down) => match read {
                // The server has done it: its answer goes nowhere.
                Ok(_) if loses_answer => return,
                Ok(n) if n > 0 => {
                    delay().await;
                    if client.write_all(down.get(..n).unwrap_or_default()).await.is_err() {
                        return;
                    }
                }
                _ => return,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A server that answers every byte with the next one, and how many it has had.
    async fn server() -> (String, Arc<AtomicUsize>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("test://u@{}/db", listener.local_addr().unwrap());
        let had = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&had);
        tokio::spawn(async move {
            while let Ok((mut client, _)) = listener.accept().await {
                let counter = Arc::clone(&counter);
                tokio::spawn(async move {
                    while let Ok(byte) = client.read_u8().await {
                        counter.fetch_add(1, Ordering::SeqCst);
                        client.write_u8(byte + 1).await.unwrap();
                    }
                });
            }
        });
        (url, had)
    }

    async fn ask(client: &mut TcpStream, byte: u8) -> io::Result<u8> {
        client.write_u8(byte).await?;
        client.read_u8().await
    }

    #[tokio::test]
    async fn requests_and_answers_are_lost_as_told() {
        let (url, had) = server().await;
        let proxy = Proxy::before(&url).await.unwrap();
        assert_eq!(proxy.url(), format!("test://u@127.0.0.1:{}/db", proxy.port()));
        let connect = || TcpStream::connect(("127.0.0.1", proxy.port()));
        let mut client = connect().await.unwrap();
        assert_eq!(ask(&mut client, 1).await.unwrap(), 2);
        proxy.lose_answer_in(2);
        assert_eq!(ask(&mut client, 3).await.unwrap(), 4);
        assert!(ask(&mut client, 5).await.is_err());
        assert_eq!(had.load(Ordering::SeqCst), 3, "the server has had it");
        proxy.lose_request_in(1);
        let mut client = connect().await.unwrap();
        assert!(ask(&mut client, 7).await.is_err());
        assert_eq!(had.load(Ordering::SeqCst), 3);
        let mut client = connect().await.unwrap();
        assert_eq!(ask(&mut client, 9).await.unwrap(), 10);
        proxy.hang_up();
        assert!(client.read_u8().await.is_err());
        assert!(Proxy::before("test://nowhere").await.is_err());
    }
}
