//! Accounts on one shard with lost answers, step by step, for any set of rules.

use ringfence_chaos::counters::{Call, Deed, Desk, Log, Order, Violation, audit, read};
use ringfence_client::{
    Client,
    counter::{RequestId, Terms},
};
use ringfence_coordinator::spawn::RedisServer;
use ringfence_test_support::{self as support, Proxy, Trap, Whose, eventually};
use tempfile::TempDir;

const ACCOUNTS: usize = 2;
const SEGMENTS: u32 = 2;

/// One shard, and its clients.
struct Bank {
    _server: RedisServer,
    dir: TempDir,
    proxy: Proxy,
    desk: Desk,
}

impl Bank {
    /// With new accounts.
    async fn open() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let server = RedisServer::spawn().await.unwrap();
        let proxy = Proxy::start(server.port()).await;
        let founder = Client::builder().redis([proxy.url()]);
        let client = founder.servers_are_new(true).build().await.unwrap();
        let log = Log::create(dir.path(), 1).unwrap();
        let desk = Desk::open(&client, ACCOUNTS, log);
        desk.create(Terms::in_memory(), SEGMENTS).await.unwrap();
        for account in &desk.accounts {
            // From now on it need not ask what segments there are.
            let account = account.at_shards().unwrap();
            account.read_manifest().await.unwrap();
        }
        Self {
            dir,
            _server: server,
            proxy,
            desk,
        }
    }

    /// An order of the first account, with the segment of that index as its home.
    async fn order_at(&self, home: u32, amount: i64, deed: Deed) -> Order {
        let manifest = self.desk.accounts[0]
            .at_shards()
            .unwrap()
            .read_manifest()
            .await
            .unwrap();
        let orders = (0..).map(|number| {
            let name = format!("{deed:?}/{number}");
            self.desk.order(name, 0, amount, deed.clone())
        });
        let is_at = |order: &Order| {
            let id = RequestId::new(order.time_ms, &order.name).unwrap();
            manifest.home_of(&id) == Some(home)
        };
        orders.into_iter().find(is_at).expect("half of them are")
    }

    /// The answer to the nth request from now on is not heard.
    fn lose_answer(&self, nth: u64, deed: support::Deed) {
        let trap = Trap::new(Whose::lane("counters"), deed);
        self.proxy.trap(trap.command(&["FCALL"]).nth(nth));
    }

    /// Looks at every account, and checks all that was answered.
    async fn audit(self) -> Vec<Violation> {
        for account in 0..ACCOUNTS {
            self.desk.call(&Call::Exact(account)).await;
        }
        audit(&read(self.dir.path()).unwrap(), ACCOUNTS, &[])
    }
}

const CUT: support::Deed = support::Deed::Cut { reply_bytes: 0 };

/// A deposit is made, the answer is lost, and it is asked for again.
pub(crate) async fn deposited_without_an_answer() -> Vec<Violation> {
    let bank = Bank::open().await;
    let deposit = bank.order_at(0, 100, Deed::Deposit).await;
    bank.lose_answer(1, CUT);
    bank.desk.call(&Call::Change(deposit)).await;
    assert_eq!(bank.proxy.sprung(), 1);
    bank.audit().await
}

/// A home is short, looks, and borrows: the loan is made, the answer is lost, and it is asked for again.
pub(crate) async fn lent_without_an_answer() -> Vec<Violation> {
    let bank = Bank::open().await;
    let deposit = bank.order_at(0, 100, Deed::Deposit).await;
    bank.desk.call(&Call::Change(deposit)).await;
    let deduct = bank.order_at(1, 10, Deed::Deduct).await;
    bank.lose_answer(3, CUT);
    bank.desk.call(&Call::Change(deduct)).await;
    assert_eq!(bank.proxy.sprung(), 1);
    bank.audit().await
}

/// A transfer is sent and credited, and its caller is gone; a sweep runs, then the transfer is
/// repeated.
pub(crate) async fn swept_amid_a_transfer() -> Vec<Violation> {
    let bank = Bank::open().await;
    let deposit = bank.order_at(0, 100, Deed::Deposit).await;
    bank.desk.call(&Call::Change(deposit)).await;
    let transfer = Call::Change(bank.order_at(0, 10, Deed::Transfer(1)).await);
    bank.lose_answer(2, support::Deed::LoseReplies);
    let credited = eventually("the destination is credited", async || {
        bank.proxy.sprung() == 1
    });
    tokio::select! {
        biased;
        () = credited => {}
        answer = bank.desk.call(&transfer) => panic!("{answer:?}"),
    }
    let client = Client::builder()
        .redis([bank.proxy.url()])
        .build()
        .await
        .unwrap();
    let log = Log::create(bank.dir.path(), 2).unwrap();
    let other = Desk::open(&client, ACCOUNTS, log);
    other.sweep().await.unwrap();
    other.call(&transfer).await;
    for account in 0..ACCOUNTS {
        other.call(&Call::Exact(account)).await;
    }
    audit(&read(bank.dir.path()).unwrap(), ACCOUNTS, &[])
}
