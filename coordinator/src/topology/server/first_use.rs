//! From a list of addresses to the topology that they belong to.

use std::{collections::BTreeMap, sync::Arc};

use futures_util::future::BoxFuture;
use hashbrown::HashSet;
use tokio::time::{Duration, sleep};

use super::{
    Founding, ServerTopology, caller::Caller, member::Member, members::Members, stored::Pointer,
    survey::Survey,
};
use crate::{
    backoff::Backoff,
    clock::Clock,
    ids::ClientId,
    random::Random,
    shard::ServerOptions,
    topology::{Topology, TopologyError},
};

/// Pauses between two attempts: other processes may be founding the same topology.
const PAUSE_FIRST: Duration = Duration::from_millis(20);
const PAUSE_MAX: Duration = Duration::from_millis(500);

/// The topology that a list of addresses belongs to.
#[derive(Debug)]
pub struct Joined {
    /// The store of its record.
    pub store: Arc<ServerTopology>,
    /// The record.
    pub topology: Arc<Topology>,
    /// Whether this call founded it.
    pub founded_now: bool,
    /// Warnings for a person, in sentences.
    pub warnings: Vec<String>,
}

/// Finds the topology that `seeds` belong to, or founds one on them.
///
/// The seeds only say which servers to ask: the topology decides on the members. A seed that is not
/// a member, or is silent, is a warning. So is a home without a usable record, if
/// [recovery](ServerTopology::recover) is impossible without help and another member has a copy. A
/// topology is founded only if every seed answers and none carries a trace of one. It gets all
/// seeds, called a, b, c and so on in their order. Any number of processes may do so at once, with
/// their seeds in any order, and any of them may end at any time: the others agree on one topology.
///
/// # Errors
///
/// * [`TopologyError::Seeds`]: two seeds are one server, or belong to two topologies, or a server
///   is unusable, or [is not a member](Founding::members_only). Names them.
/// * [`TopologyError::Lost`]: a topology was in use, and nothing is left of its record.
/// * [`TopologyError::Founding`]: the terms in `founding` are impossible.
/// * [`TopologyError::Malformed`]: a server has foreign data under Ringfence's names.
/// * [`TopologyError::Unreachable`]: not done within [`Founding::within`]; names the last obstacle.
///
/// # Cancel safety
///
/// Dropping the future may leave a founding unfinished: the next call, of any process, finishes or
/// abandons it.
pub async fn connect(
    seeds: Vec<impl Into<ServerOptions>>,
    founding: Founding,
    clock: Arc<dyn Clock>,
    random: Arc<Random>,
    engine: ClientId,
) -> Result<Joined, TopologyError> {
    let until = clock.now() + founding.within;
    let mut backoff = Backoff::new(PAUSE_FIRST, PAUSE_MAX);
    let seeds = seeds.into_iter().map(Into::into).collect();
    let mut first_use = FirstUse::new(seeds, founding, clock, random, engine)?;
    loop {
        let obstacle = match first_use.attempt().await {
            Ok(Some(joined)) => return Ok(joined),
            Ok(None) => first_use.others_are_founding(),
            Err(error) if error.is_retryable() => error,
            Err(error) => return Err(error),
        };
        if first_use.caller.clock.now() >= until {
            return Err(obstacle);
        }
        sleep(backoff.next(&first_use.caller.random)).await;
    }
}

/// One process's search for its topology.
#[derive(Debug)]
pub(super) struct FirstUse {
    /// The seeds, by their place in the list; a separate home has none.
    pub(super) servers: Vec<(Option<usize>, Arc<Member>)>,
    pub(super) founding: Founding,
    pub(super) caller: Arc<Caller>,
    /// Ids of the topologies that this process claimed.
    pub(super) claimed: HashSet<String>,
}

impl FirstUse {
    fn new(
        seeds: Vec<ServerOptions>,
        founding: Founding,
        clock: Arc<dyn Clock>,
        random: Arc<Random>,
        engine: ClientId,
    ) -> Result<Self, TopologyError> {
        if seeds.is_empty() {
            return Err(TopologyError::Seeds("no address is given".into()));
        }
        let members = Arc::new(Members::new(seeds.clone(), engine, random.clone()));
        let mut servers: Vec<(Option<usize>, Arc<Member>)> = Vec::new();
        let given = |servers: &[(Option<usize>, Arc<Member>)], address: &str| {
            servers.iter().any(|(_, other)| other.address() == address)
        };
        for (place, options) in seeds.into_iter().enumerate() {
            if given(&servers, options.address()) {
                let address = options.address();
                return Err(TopologyError::Seeds(format!("{address} is given twice")));
            }
            servers.push((Some(place), members.with(options)));
        }
        if let Some(address) = founding.home.clone()
            && !given(&servers, address.as_str())
        {
            servers.push((None, members.home(address)));
        }
        let caller = Arc::new(Caller {
            engine,
            members,
            clock,
            random,
            watch_every: founding.watch_every,
            observer: founding.observer.clone(),
        });
        Ok(Self {
            servers,
            founding,
            caller,
            claimed: HashSet::new(),
        })
    }

    /// Looks at every server and takes the possible step. `None`: a step was taken, or another
    /// process is taking it; look again.
    fn attempt(&mut self) -> BoxFuture<'_, Result<Option<Joined>, TopologyError>> {
        Box::pin(async move {
            let survey = Survey::take(&self.servers).await?;
            let topologies = survey.topologies();
            let store = match topologies.len() {
                0 => self.found(&survey).await?,
                1 => {
                    let (pointer, _) = &topologies.values().next().expect("there is one");
                    self.ask(pointer, &survey).await?
                }
                _ => self.ask_all(&topologies, &survey).await?,
            };
            let Some(store) = store else { return Ok(None) };
            let mut warnings = Vec::new();
            let looked = match survey.silence_of(&store.home()) {
                // It has had its time to answer: a second attempt would take another second.
                Some(error) => Err(error.clone()),
                None => store.look().await,
            };
            let topology = match store.put_in_force(looked, &[]).await {
                Ok(topology) => topology,
                Err(error) if error.is_retryable() && survey.newest(&store.view().id).is_some() => {
                    let view = store.view();
                    warnings.push(format!(
                        "{error}; going by version {} meanwhile",
                        view.version
                    ));
                    view
                }
                Err(error) => return Err(error),
            };
            if self.founding.members_only {
                self.check_members(&topology, &survey).await?;
            }
            warnings.extend(self.warnings(&store, &topology, &survey).await);
            let founded_now = self.claimed.contains(&topology.id);
            Ok(Some(Joined {
                store,
                topology,
                founded_now,
                warnings,
            }))
        })
    }

    /// Asks the homes of several topologies. All but one must turn out to have never been in use.
    async fn ask_all(
        &self,
        topologies: &BTreeMap<String, (Pointer, Vec<String>)>,
        survey: &Survey,
    ) -> Result<Option<Arc<ServerTopology>>, TopologyError> {
        let (mut acted, mut in_use) = (false, Vec::new());
        for (pointer, there) in topologies.values() {
            match self.ask(pointer, survey).await {
                Ok(None) => acted = true,
                Ok(Some(_)) | Err(TopologyError::Lost(_)) => {
                    in_use.push(format!("{} to topology {}", there.join(", "), pointer.id));
                }
                Err(error) => return Err(error),
            }
        }
        if in_use.len() > 1 && !acted {
            return Err(TopologyError::Seeds(format!(
                "the addresses belong to several topologies: {}",
                in_use.join("; ")
            )));
        }
        Ok(None)
    }

    fn others_are_founding(&self) -> TopologyError {
        TopologyError::Unreachable {
            address: self.servers[0].1.address().to_owned(),
            reason: format!(
                "no topology was agreed on within {:?}",
                self.founding.within
            ),
        }
    }
}
