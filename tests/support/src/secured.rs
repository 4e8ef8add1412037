//! Servers that speak TLS, require a client certificate, and know one user with few rights.

use std::{fs, net::TcpListener};

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, KeyUsagePurpose,
    SanType,
};
use ringfence_coordinator::spawn::{RedisServer, RedisServerBuilder, SpawnError};
use tempfile::TempDir;

const USER: &str = "locker";
const PASSWORD: &str = "s3cret";
/// The number of ports for TLS to try. Another process may take one first.
const PORTS_MAX: usize = 5;

/// The rights that are enough, as docs/operate/servers.md lists them.
pub fn rights() -> &'static str {
    let mut lines = include_str!("../../../docs/operate/servers.md").lines();
    let rights = lines.find(|line| line.starts_with("~ringfence:*"));
    rights.expect("docs/operate/servers.md lists them")
}

/// A certificate authority, its certificates for servers and for clients, and an ACL file.
pub struct Secured {
    dir: TempDir,
    authority: CertifiedIssuer<'static, KeyPair>,
}

impl Default for Secured {
    fn default() -> Self {
        let secured = Self {
            dir: TempDir::with_prefix("ringfence-secured-").unwrap(),
            authority: authority(),
        };
        secured.write("ca.pem", &secured.authority.pem());
        for of in ["server", "client"] {
            secured.issue(of, "127.0.0.1");
        }
        let rights = rights();
        let users =
            format!("user default on nopass ~* &* +@all\nuser {USER} on >{PASSWORD} {rights}\n");
        secured.write("users.acl", &users);
        secured
    }
}

impl Secured {
    /// A server set up by `builder` that also speaks TLS, on the returned port. On its plain port
    /// it works as before, for direct access by the test.
    pub async fn spawn(&self, builder: RedisServerBuilder) -> (RedisServer, u16) {
        let builder = builder
            .set("tls-ca-cert-file", self.path("ca.pem"))
            .set("tls-cert-file", self.path("server.pem"))
            .set("tls-key-file", self.path("server.key"))
            .set("aclfile", self.path("users.acl"));
        for _ in 0..PORTS_MAX {
            let free = TcpListener::bind(("127.0.0.1", 0)).and_then(|free| free.local_addr());
            let port = free.unwrap().port();
            match builder.clone().set("tls-port", port).spawn().await {
                Err(SpawnError::Ended { log }) if log.contains(&format!("port {port} (TLS)")) => {}
                spawned => return (spawned.unwrap(), port),
            }
        }
        panic!("{PORTS_MAX} ports were free, and were taken before the server started");
    }

    /// The address of a server that speaks TLS on `port`, with the authority and, if `known`, a
    /// client certificate.
    pub fn url(&self, port: u16, known: bool) -> String {
        let ca = self.path("ca.pem");
        let url = format!("rediss://{USER}:{PASSWORD}@127.0.0.1:{port}?ca={ca}");
        if !known {
            return url;
        }
        let (cert, key) = (self.path("client.pem"), self.path("client.key"));
        format!("{url}&cert={cert}&key={key}")
    }

    /// Writes `of.pem` and `of.key`: a certificate with the common name `of`, and with `name`, a host or a URI, as its
    /// only alternative name.
    pub fn issue(&self, of: &str, name: &str) {
        let mut params = CertificateParams::default();
        params.subject_alt_names = match (name.parse(), name.contains("://")) {
            (Ok(address), _) => vec![SanType::IpAddress(address)],
            (_, true) => vec![SanType::URI(name.try_into().unwrap())],
            (_, false) => vec![SanType::DnsName(name.try_into().unwrap())],
        };
        params.distinguished_name.push(DnType::CommonName, of);
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.authority).unwrap();
        self.write(&format!("{of}.pem"), &certificate.pem());
        self.write(&format!("{of}.key"), &key.serialize_pem());
    }

    /// The path of a file: `ca.pem`, or `server`, `client` or an issued name with `.pem` or `.key`.
    pub fn path(&self, name: &str) -> String {
        self.dir.path().join(name).to_str().unwrap().to_owned()
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).unwrap();
    }
}

fn authority() -> CertifiedIssuer<'static, KeyPair> {
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    params
        .distinguished_name
        .push(DnType::CommonName, "authority of a test");
    CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
}
