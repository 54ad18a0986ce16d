//! A loopback token endpoint, so that the real client's refresh can be watched
//! and slowed down.
//!
//! The client insists on its own host name and on TLS. It does honour
//! `HTTPS_PROXY` and `NODE_EXTRA_CA_CERTS`: this is a CONNECT proxy that answers
//! the tunnel itself, with a certificate of a throw-away authority. Nothing is
//! resolved and nothing leaves the machine. As with the real endpoint, a refresh
//! token works once.

use std::io::{self, BufReader, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use serde_json::{Value, json};

use crate::login::{Login, refresh_token_parts};
use crate::mock_api::http::{self, HttpRequest};
use crate::mock_api::server::{Closing, Server};

/// The hosts that the client asks for tokens, by version.
const HOSTS: [&str; 3] = [
    "platform.claude.com",
    "console.anthropic.com",
    "api.anthropic.com",
];

/// One refresh.
#[derive(Debug, Clone)]
pub struct Refresh {
    /// When the request was read.
    pub asked_at: SystemTime,
    /// When the answer was sent; `None` while it is held back.
    pub answered_at: Option<SystemTime>,
    /// The account of the refresh token.
    pub account: String,
    /// The generation that was consumed.
    pub generation: u32,
    /// Whether the token had been used before; such a refresh is refused.
    pub reused: bool,
}

/// The running endpoint.
#[derive(Debug)]
pub struct OauthEndpoint {
    shared: Arc<Shared>,
    server: Server,
    authority: PathBuf,
}

#[derive(Debug, Default)]
struct Shared {
    delay: Mutex<Duration>,
    refreshes: Mutex<Vec<Refresh>>,
}

impl OauthEndpoint {
    /// Starts on a free port; the authority's certificate goes into `folder`.
    pub fn start(folder: &Path) -> OauthEndpoint {
        let (config, authority_pem) = tls_config();
        let authority = folder.join("token-endpoint-ca.pem");
        fs_err::write(&authority, authority_pem).unwrap();
        let shared = Arc::new(Shared::default());
        let server = Server::start({
            let shared = Arc::clone(&shared);
            move |stream, closing| shared.tunnel(stream, &config, &closing)
        });
        OauthEndpoint {
            shared,
            server,
            authority,
        }
    }

    /// The environment that leads a client here.
    pub fn environment(&self) -> [(&'static str, String); 3] {
        [
            ("HTTPS_PROXY", format!("http://127.0.0.1:{}", self.server.port())),
            ("NO_PROXY", "127.0.0.1,localhost".to_owned()),
            ("NODE_EXTRA_CA_CERTS", self.authority.display().to_string()),
        ]
    }

    /// From now on an answer is held back so long.
    pub fn delay(&self, delay: Duration) {
        *lock(&self.shared.delay) = delay;
    }

    /// Every refresh so far.
    pub fn refreshes(&self) -> Vec<Refresh> {
        lock(&self.shared.refreshes).clone()
    }

    /// Waits until so many refreshes were asked for.
    pub fn wait_asked(&self, count: usize, patience: Duration) -> Vec<Refresh> {
        self.wait(count, patience, |_| true)
    }

    /// Waits until so many refreshes were answered.
    pub fn wait_answered(&self, count: usize, patience: Duration) -> Vec<Refresh> {
        self.wait(count, patience, |refresh| refresh.answered_at.is_some())
    }

    fn wait(&self, count: usize, patience: Duration, counts: fn(&Refresh) -> bool) -> Vec<Refresh> {
        let end = Instant::now() + patience;
        loop {
            let refreshes = self.refreshes();
            if refreshes.iter().filter(|refresh| counts(refresh)).count() >= count {
                return refreshes;
            }
            assert!(
                Instant::now() < end,
                "not {count} refreshes within {patience:?}: {refreshes:?}"
            );
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

impl Shared {
    fn tunnel(&self, mut stream: TcpStream, config: &Arc<ServerConfig>, closing: &Closing) -> io::Result<()> {
        // Unbuffered beyond the request: the next bytes belong to the handshake,
        // and a client sends none of them before it has the answer.
        let request = http::read_request(&mut BufReader::new(stream.try_clone()?))?;
        if request.is_none_or(|request| request.method != "CONNECT") {
            return Ok(());
        }
        stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n")?;

        let connection = ServerConnection::new(Arc::clone(config)).map_err(io::Error::other)?;
        let mut tls = BufReader::new(StreamOwned::new(connection, stream));
        while let Some(request) = http::read_request(&mut tls)? {
            let Some(number) = self.note(&request) else {
                http::write_json(tls.get_mut(), 404, &[], &json!({ "error": "not here" }))?;
                continue;
            };
            let delay = *lock(&self.delay);
            closing.sleep(delay);
            let (status, body) = answer(&lock(&self.refreshes)[number]);
            http::write_json(tls.get_mut(), status, &[], &body)?;
            lock(&self.refreshes)[number].answered_at = Some(SystemTime::now());
        }
        Ok(())
    }

    /// Keeps a refresh of one of our tokens and returns its place in the log. The
    /// token is used up from here on, whether or not the answer arrives.
    fn note(&self, request: &HttpRequest) -> Option<usize> {
        let body: Value = serde_json::from_slice(&request.body).ok()?;
        let token = body.get("refresh_token")?.as_str()?;
        let (account, generation) = refresh_token_parts(token)?;
        if !request.path().ends_with("/oauth/token") {
            return None;
        }
        let mut refreshes = lock(&self.refreshes);
        let same = |old: &Refresh| old.account == account && old.generation == generation;
        let reused = refreshes.iter().any(same);
        refreshes.push(Refresh {
            asked_at: SystemTime::now(),
            answered_at: None,
            account: account.to_owned(),
            generation,
            reused,
        });
        Some(refreshes.len() - 1)
    }
}

fn answer(refresh: &Refresh) -> (u16, Value) {
    if refresh.reused {
        let why = "Refresh token not found or invalid";
        return (400, json!({ "error": "invalid_grant", "error_description": why }));
    }
    let next = Login {
        generation: refresh.generation + 1,
        ..Login::new(&refresh.account)
    };
    let body = json!({
        "token_type": "Bearer", "expires_in": 28_800,
        "access_token": next.access_token(), "refresh_token": next.refresh_token(),
        "scope": "user:inference user:profile user:sessions:claude_code"
    });
    (200, body)
}

/// The server's TLS, and the certificate of the authority that the client must
/// trust.
fn tls_config() -> (Arc<ServerConfig>, String) {
    let authority_key = KeyPair::generate().unwrap();
    let mut authority = CertificateParams::default();
    // Without a name of its own the server's certificate would pass for self-signed.
    authority
        .distinguished_name
        .push(DnType::CommonName, "throw-away authority");
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority_pem = authority.self_signed(&authority_key).unwrap().pem();
    let issuer = Issuer::new(authority, authority_key);

    let key = KeyPair::generate().unwrap();
    let hosts = HOSTS.map(str::to_owned);
    let certificate = CertificateParams::new(hosts).unwrap();
    let certificate = certificate.signed_by(&key, &issuer).unwrap();

    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate.der().clone()], key)
        .unwrap();
    (Arc::new(config), authority_pem)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
