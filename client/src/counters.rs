//! The counters of a namespace: accounts of money, coins or stock.

use std::time::Duration;

use ringfence_coordinator::{
    engine::Engine,
    name::{NameError, Namespace, hex},
};
use ringfence_segment_lock::{self as segments, Account, CounterError, RequestId, Storage, Terms};

use crate::{AccountList, Client, Counter, account::At};

/// The counters of a namespace. Made by [`Client::counters`]. Cheap to clone.
///
/// # Examples
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use ringfence_client::{Client, counter::{Amount, Terms}};
///
/// let client = Client::builder().embedded(3).build().await?;
/// let counters = client.counters();
/// let coins = counters.create("coins/42", Terms::on_disk(), 4).await?;
///
/// coins.deposit(&counters.request("gift-1")?, Amount::new(100)?).await?;
/// let order = counters.request("order-7")?;
/// coins.deduct(&order, Amount::new(30)?).await?;
/// coins.deduct(&order, Amount::new(30)?).await?; // a repeat takes effect once
/// assert_eq!(coins.exact_balance().await?.available, 70);
/// # client.close().await;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Counters {
    place: Place,
    namespace: Namespace,
    engine: Engine,
}

/// Where the accounts are.
#[derive(Clone, Debug)]
enum Place {
    Shards(Storage),
    #[cfg(feature = "service")]
    Service(crate::service::Accounts),
}

impl Client {
    /// The counters of the namespace `default`.
    pub fn counters(&self) -> Counters {
        self.counters_in(&Namespace::default())
    }

    /// The counters of `namespace`.
    ///
    /// # Errors
    ///
    /// [`NameError::Namespace`].
    pub fn counters_of(&self, namespace: &str) -> Result<Counters, NameError> {
        Ok(self.counters_in(&Namespace::new(namespace)?))
    }

    fn counters_in(&self, namespace: &Namespace) -> Counters {
        Counters {
            place: self.place_of(namespace),
            namespace: namespace.clone(),
            engine: self.engine.clone(),
        }
    }

    fn place_of(&self, namespace: &Namespace) -> Place {
        #[cfg(feature = "service")]
        if let Some(reach) = &self.reach {
            let accounts = crate::service::Accounts::new(reach.clone(), namespace.clone());
            return Place::Service(accounts);
        }
        Place::Shards(self.engine.counters(namespace))
    }
}

impl Counters {
    /// Creates an account of `segments` segments, with nothing in it; or finds it, if its terms are
    /// the same. More segments take more changes per second, from more shards. Each read of the
    /// whole asks all of them.
    ///
    /// # Errors
    ///
    /// A number is out of range, an account of that name has other terms, or a shard gave no
    /// answer.
    ///
    /// # Cancel safety
    ///
    /// If the call ends early, the next client that opens the account finishes its creation.
    pub async fn create(
        &self,
        account: &str,
        terms: Terms,
        segments: u32,
    ) -> Result<Counter, CounterError> {
        let account = Account::new(account)?;
        Ok(Counter(match &self.place {
            Place::Shards(storage) => {
                let created = segments::Counter::create(storage.clone(), account, terms, segments);
                At::Shards(created.await?)
            }
            #[cfg(feature = "service")]
            Place::Service(accounts) => {
                At::Service(accounts.create(account, terms, segments).await?)
            }
        }))
    }

    /// Opens an account. Its existence is checked by its first use.
    ///
    /// # Errors
    ///
    /// The name is empty, or too long.
    pub fn open(&self, account: &str) -> Result<Counter, CounterError> {
        let account = Account::new(account)?;
        Ok(Counter(match &self.place {
            Place::Shards(storage) => At::Shards(segments::Counter::open(storage.clone(), account)),
            #[cfg(feature = "service")]
            Place::Service(accounts) => At::Service(accounts.open(account)),
        }))
    }

    /// The accounts whose names begin with `prefix`, page by page. Sends no request yet.
    pub fn list(&self, prefix: &str) -> AccountList {
        #[cfg(feature = "service")]
        if let Place::Service(accounts) = &self.place {
            return accounts.list(prefix.to_owned());
        }
        let names = self.engine.accounts(Some(&self.namespace));
        AccountList::at_shards(names, self.clone(), prefix.to_owned())
    }

    /// The id of a new request, created now. Keep it for repeats: its time is part of the id.
    ///
    /// # Errors
    ///
    /// The name is empty, or too long.
    pub fn request(&self, name: &str) -> Result<RequestId, CounterError> {
        Ok(RequestId::new(self.now_ms(), name)?)
    }

    /// The id of a new request, created now, with a unique name.
    pub fn new_request(&self) -> RequestId {
        let name = hex::<32>(self.engine.random().id());
        let name = std::str::from_utf8(&name).expect("digits are text");
        RequestId::new(self.now_ms(), name).expect("32 digits are a name")
    }

    /// A deadline for a reservation, `length` from now, in ms since 1970.
    pub fn deadline_in(&self, length: Duration) -> u64 {
        let length_ms = u64::try_from(length.as_millis()).unwrap_or(u64::MAX);
        self.now_ms().saturating_add(length_ms)
    }

    fn now_ms(&self) -> u64 {
        u64::try_from(self.engine.clock().unix().as_millis()).unwrap_or(u64::MAX)
    }
}
