//! Finds the caller of a request, by its bearer token or its certificate.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use hashbrown::HashMap;
use parking_lot::RwLock;
use ringfence_api::{Error, Reason};
use ringfence_client::Clock;
use rustls::pki_types::CertificateDer;
use tonic::{Request, Status, service::Interceptor};
use webpki::EndEntityCert;

use super::{Caller, Principal, Proof, Roles, audit, limited, token_digest};
use crate::{
    bounds::OfCaller,
    connections::{Numbers, Places},
};

const HEADER: &str = "authorization";
const ORIGIN: &str = "origin";
const SCHEME: &str = "Bearer";

/// A principal with too many connections may try again after this time.
const CONNECT_AFTER: Duration = Duration::from_secs(1);

/// A browser sends the header with every change that a page asks for. Any page of any site may do that, unless it has to prove
/// who it is with more than the browser adds by itself. A name that resolves to this host makes a page one of this host.
const FROM_A_PAGE: &str = "a request with the header origin comes from a web page, which needs the bearer token of a principal";

/// Lets requests of known callers pass.
#[derive(Clone, Debug)]
pub(crate) struct Authentication {
    callers: Arc<RwLock<Arc<Callers>>>,
    per_second: u32,
    clock: Arc<dyn Clock>,
    numbers: Numbers,
}

#[derive(Debug)]
enum Callers {
    /// No principal is set: every request passes, and may do everything. Each connection has a rate of its own.
    Open(Arc<Caller>),
    /// By proof.
    Known(HashMap<Proof, Arc<Caller>>),
}

impl Callers {
    fn new(
        principals: &BTreeMap<String, Principal>,
        per_second: u32,
        (clock, numbers): (&Arc<dyn Clock>, &Numbers),
    ) -> Self {
        let caller = |name, roles| {
            let (clock, numbers) = (clock.clone(), numbers.clone());
            Caller::new(name, roles, per_second, clock, numbers)
        };
        if principals.is_empty() {
            return Self::Open(Arc::new(caller(None, Roles::all())));
        }
        let known = principals.iter().flat_map(|(name, principal)| {
            let caller = caller(Some(name.clone()), principal.roles.clone());
            let caller = Arc::new(caller.with_accounts_per_hour(principal.accounts_per_hour));
            let proofs = principal.proofs.iter();
            proofs.map(move |proof| (proof.clone(), caller.clone()))
        });
        Self::Known(known.collect())
    }
}

impl Authentication {
    /// Of `principals`, by name, with `per_second` calls each. `numbers` count the refused ones.
    pub(crate) fn new(
        principals: &BTreeMap<String, Principal>,
        per_second: u32,
        clock: &Arc<dyn Clock>,
        numbers: &Numbers,
    ) -> Self {
        let callers = Callers::new(principals, per_second, (clock, numbers));
        Self {
            callers: Arc::new(RwLock::new(Arc::new(callers))),
            per_second,
            clock: clock.clone(),
            numbers: numbers.clone(),
        }
    }

    /// From now on, calls are those of these `principals`.
    pub(crate) fn replace(&self, principals: &BTreeMap<String, Principal>) {
        let counted = (&self.clock, &self.numbers);
        let callers = Callers::new(principals, self.per_second, counted);
        *self.callers.write() = Arc::new(callers);
    }

    fn callers(&self) -> Arc<Callers> {
        self.callers.read().clone()
    }

    /// Whether every request passes.
    pub(crate) fn is_open(&self) -> bool {
        matches!(*self.callers(), Callers::Open(_))
    }

    /// The caller of a request over HTTP, with its header `authorization`. Certificates do not count.
    pub(crate) fn caller_over_http(&self, header: Option<&str>) -> Result<Arc<Caller>, Error> {
        match (&*self.callers(), header) {
            (Callers::Open(caller), _) => Ok(caller.clone()),
            (Callers::Known(known), Some(header)) => with_token(known, header),
            (Callers::Known(_), None) => {
                Err(refused("no bearer token (authorization: Bearer TOKEN)"))
            }
        }
    }

    fn caller(&self, request: &Request<()>) -> Result<Arc<Caller>, Error> {
        let callers = self.callers();
        let metadata = request.metadata();
        let proves = matches!(*callers, Callers::Known(_)) && metadata.contains_key(HEADER);
        if metadata.contains_key(ORIGIN) && !proves {
            return Err(Error::new(Reason::NotAllowed, FROM_A_PAGE));
        }
        let known = match &*callers {
            Callers::Open(caller) => {
                let places = request.extensions().get::<Places>();
                return Ok(places.map_or_else(|| caller.clone(), |places| places.caller(caller)));
            }
            Callers::Known(known) => known,
        };
        if let Some(header) = request.metadata().get(HEADER) {
            return with_token(known, header.to_str().unwrap_or_default());
        }
        let places = request.extensions().get::<Places>();
        let certificate = places.and_then(|places| places.certificate.as_ref());
        let caller = certificate
            .into_iter()
            .flat_map(names)
            .find_map(|name| known.get(&Proof::Certificate(name)).cloned());
        caller.ok_or_else(|| {
            refused(
                "no bearer token (authorization: Bearer TOKEN), and no certificate of a principal",
            )
        })
    }
}

/// The caller whose token is in `header`.
fn with_token(known: &HashMap<Proof, Arc<Caller>>, header: &str) -> Result<Arc<Caller>, Error> {
    let token = header.split_once(' ');
    let token = token.filter(|(scheme, _)| scheme.eq_ignore_ascii_case(SCHEME));
    let token = token.map(|(_, token)| token.trim_start());
    let token = token.ok_or_else(|| refused("authorization must be: Bearer TOKEN"))?;
    // The lookup compares digests: its duration tells nothing about a token.
    let caller = known.get(&Proof::Token(token_digest(token)));
    caller
        .cloned()
        .ok_or_else(|| refused("the bearer token is not known"))
}

fn refused(message: &str) -> Error {
    Error::new(Reason::Unauthenticated, message)
}

/// The DNS names and the URIs of `certificate`.
fn names(certificate: &CertificateDer<'_>) -> Vec<String> {
    let Ok(certificate) = EndEntityCert::try_from(certificate) else {
        return Vec::new();
    };
    let names = certificate.valid_dns_names();
    let names = names.chain(certificate.valid_uri_names());
    names.map(str::to_owned).collect()
}

impl Interceptor for Authentication {
    fn call(&mut self, mut request: Request<()>) -> Result<Request<()>, Status> {
        let caller = self.caller(&request).inspect_err(|error| {
            audit::refused(None, request.extensions().get(), error);
        })?;
        if let Some(places) = request.extensions().get::<Places>() {
            let known = places.known(caller.name());
            known.map_err(|max| {
                let message = format!("more than {max} connections of one principal, three quarters of limits.connections");
                limited(&message, CONNECT_AFTER)
            })?;
        }
        let extensions = request.extensions();
        if let (Some(kind), Some(of_caller)) = (extensions.get(), extensions.get::<OfCaller>()) {
            // One call has one answer.
            let _ = of_caller.0.set(caller.place(*kind)?);
        }
        request.extensions_mut().insert(caller);
        Ok(request)
    }
}
