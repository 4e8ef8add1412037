//! Every call needs its role.

use std::time::Duration;

use ringfence_api::{
    Error, Reason,
    v1::{
        AbortResizeRequest, AcceptAccountRequest, Account, AccountFailure, AddShardRequest,
        BatchChangeRequest, CancelRequest, Change, CloseAccountRequest, ConfirmRequest,
        CountDownLatchRequest, CreateAccountRequest, DeductRequest, DeleteAccountRequest,
        DepositRequest, Durability, FindRequest, ForceReleaseRequest, GetAccountRequest,
        GetBalanceRequest, GetHistoryRequest, GetLatchRequest, GetTopologyRequest, InspectRequest,
        LabelAccountRequest, Leg, ListAccountsRequest, ListRequest, RemoveShardRequest, RequestId,
        ResegmentAccountRequest, ReserveRequest, ResumeResizeRequest, SetLatchRequest,
        SweepAccountRequest, TransferRequest, WaitLatchRequest, WeighShardRequest,
        admin_service_client::AdminServiceClient, change,
        counter_service_client::CounterServiceClient, latch_service_client::LatchServiceClient,
        lock_service_client::LockServiceClient,
    },
};
use ringfence_server::{Roles, Scope};
use tonic::{Status, transport::Channel};

use super::{principal, with};
use crate::scene::{Scene, ask};

/// Makes calls about a key, and collects their refusals.
struct Calls<'a> {
    channel: &'a Channel,
    /// Its bearer token.
    caller: &'a str,
    key: &'a str,
    refused: Vec<(&'static str, Status)>,
}

/// Makes one call.
macro_rules! call {
    ($calls:ident, $client:ident.$method:ident($message:expr)) => {
        if let Err(status) = $client.$method(with($calls.caller, $message)).await {
            $calls.refused.push((stringify!($method), status));
        }
    };
}

impl Calls<'_> {
    async fn locks(&mut self) {
        let mut locks = LockServiceClient::new(self.channel.clone());
        call!(self, locks.acquire(ask(self.key, 1000, Some(0))));
        call!(self, locks.acquire_and_watch(ask(self.key, 1000, Some(0))));
        call!(
            self,
            locks.inspect(InspectRequest {
                key: self.key.into(),
                ..InspectRequest::default()
            })
        );
        let namespace = "default".into();
        call!(self, locks.list(ListRequest { namespace }));
    }

    async fn admin(&mut self) {
        let mut admin = AdminServiceClient::new(self.channel.clone());
        call!(self, admin.get_topology(GetTopologyRequest {}));
        call!(self, admin.add_shard(AddShardRequest::default()));
        call!(self, admin.remove_shard(RemoveShardRequest::default()));
        call!(self, admin.weigh_shard(WeighShardRequest::default()));
        call!(self, admin.resume_resize(ResumeResizeRequest {}));
        call!(self, admin.abort_resize(AbortResizeRequest {}));
        call!(
            self,
            admin.force_release(ForceReleaseRequest {
                key: self.key.into(),
                reason: "a test".into(),
                ..ForceReleaseRequest::default()
            })
        );
    }

    async fn counters(&mut self) {
        let mut counters = CounterServiceClient::new(self.channel.clone());
        let account = Some(Account {
            name: self.key.into(),
            ..Account::default()
        });
        let create = CreateAccountRequest {
            account: account.clone(),
            durability: Durability::Memory.into(),
            ..CreateAccountRequest::default()
        };
        call!(self, counters.create_account(create));
        let balance = GetBalanceRequest {
            account: account.clone(),
            exact: false,
        };
        call!(self, counters.get_balance(balance));
        let find = FindRequest {
            account: account.clone(),
            id: request_id(),
        };
        call!(self, counters.find(find));
        let history = GetHistoryRequest {
            account: account.clone(),
            ..GetHistoryRequest::default()
        };
        call!(self, counters.get_history(history));
        self.whole(&mut counters, account.clone()).await;
        self.changes(&mut counters, account).await;
    }

    /// Calls about a whole account.
    async fn whole(
        &mut self,
        counters: &mut CounterServiceClient<Channel>,
        account: Option<Account>,
    ) {
        let at = || account.clone();
        call!(
            self,
            counters.get_account(GetAccountRequest { account: at() })
        );
        call!(self, counters.list_accounts(ListAccountsRequest::default()));
        let resegment = ResegmentAccountRequest {
            account: at(),
            segments: 1,
        };
        call!(self, counters.resegment_account(resegment));
        let label = LabelAccountRequest {
            account: at(),
            ..LabelAccountRequest::default()
        };
        call!(self, counters.label_account(label));
        let close = CloseAccountRequest { account: at() };
        call!(self, counters.close_account(close));
        let delete = DeleteAccountRequest { account: at() };
        call!(self, counters.delete_account(delete));
        let sweep = SweepAccountRequest { account: at() };
        call!(self, counters.sweep_account(sweep));
        let accept = AcceptAccountRequest {
            account: at(),
            no_wait: true,
        };
        call!(self, counters.accept_account(accept));
    }

    async fn latches(&mut self) {
        let mut latches = LatchServiceClient::new(self.channel.clone());
        let name = || self.key.to_owned();
        let set = SetLatchRequest {
            name: name(),
            count: 1,
            durability: Durability::Memory.into(),
            ..SetLatchRequest::default()
        };
        let count_down = CountDownLatchRequest {
            name: name(),
            id: None,
        };
        let (get, wait) = (
            GetLatchRequest { name: name() },
            WaitLatchRequest {
                name: name(),
                wait: Some(prost_types::Duration::default()),
            },
        );
        call!(self, latches.set_latch(set));
        call!(self, latches.count_down_latch(count_down));
        call!(self, latches.get_latch(get));
        call!(self, latches.wait_latch(wait));
    }

    /// One that pays another account is a call of its own.
    async fn confirms(
        &mut self,
        counters: &mut CounterServiceClient<Channel>,
        (account, id): (Option<Account>, Option<RequestId>),
    ) {
        let confirm = ConfirmRequest {
            account,
            id: id.clone(),
            ..ConfirmRequest::default()
        };
        call!(self, counters.confirm(confirm.clone()));
        let leg = Leg {
            to: "mine/other".into(),
            amount: 1,
        };
        let capture = ConfirmRequest {
            legs: vec![leg],
            capture_id: id,
            ..confirm
        };
        let answer = counters.confirm(with(self.caller, capture)).await;
        if let Err(status) = answer {
            self.refused.push(("capture", status));
        }
    }

    async fn changes(
        &mut self,
        counters: &mut CounterServiceClient<Channel>,
        account: Option<Account>,
    ) {
        let id = request_id();
        let at = id.clone().unwrap().created_at.unwrap();
        let amount = 1;
        let request = || (account.clone(), id.clone());
        let (account, id) = request();
        call!(
            self,
            counters.deposit(DepositRequest {
                account,
                id,
                amount,
                ..DepositRequest::default()
            })
        );
        let (account, id) = request();
        call!(
            self,
            counters.deduct(DeductRequest {
                account,
                id,
                amount,
                ..DeductRequest::default()
            })
        );
        let (account, id) = request();
        let reserve = ReserveRequest {
            account,
            id,
            amount,
            deadline: Some(at),
            ..ReserveRequest::default()
        };
        call!(self, counters.reserve(reserve));
        self.confirms(counters, request()).await;
        let (account, id) = request();
        call!(self, counters.cancel(CancelRequest { account, id }));
        let (account, id) = request();
        let transfer = TransferRequest {
            account,
            id,
            amount,
            to: "mine/other".into(),
            ..TransferRequest::default()
        };
        call!(self, counters.transfer(transfer));
        let (account, id) = request();
        let deposit = change::Request::Deposit(DepositRequest {
            account,
            id,
            amount,
            ..DepositRequest::default()
        });
        let change = Change {
            request: Some(deposit),
        };
        let changes = vec![change];
        let batch = with(self.caller, BatchChangeRequest { changes });
        let answer = counters.batch_change(batch).await;
        let refused = answer.map(|answer| answer.into_inner().answers.remove(0).failure);
        let refused = refused.map(|failure| {
            let AccountFailure { error, message } = failure?;
            Some(Error::from_detail(error?, message).into())
        });
        if let Some(status) = refused.unwrap_or_else(Some) {
            self.refused.push(("batch_change", status));
        }
    }
}

fn request_id() -> Option<RequestId> {
    let at = prost_types::Timestamp {
        seconds: 1_700_000_000,
        nanos: 0,
    };
    Some(RequestId {
        created_at: Some(at),
        name: "id".into(),
    })
}

/// The refusals of all calls about `key` with the bearer token of `caller`, by name of the call.
async fn refusals(channel: &Channel, caller: &str, key: &str) -> Vec<(&'static str, Status)> {
    let mut calls = Calls {
        channel,
        caller,
        key,
        refused: Vec::new(),
    };
    calls.locks().await;
    calls.counters().await;
    calls.latches().await;
    calls.admin().await;
    calls.refused
}

/// The names of the calls that were refused for want of a role.
fn not_allowed(refusals: &[(&'static str, Status)]) -> Vec<&'static str> {
    let refused = refusals
        .iter()
        .filter(|(_, status)| Error::from_status(status).reason == Reason::NotAllowed);
    refused.map(|(name, _)| *name).collect()
}

const CALLS: usize = 35;
const TOPOLOGY: [&str; 6] = [
    "get_topology",
    "add_shard",
    "remove_shard",
    "weigh_shard",
    "resume_resize",
    "abort_resize",
];
const READS: [&str; 9] = [
    "inspect",
    "list",
    "get_balance",
    "find",
    "get_history",
    "get_account",
    "list_accounts",
    "get_latch",
    "wait_latch",
];

#[tokio::test]
async fn a_call_without_its_role_reaches_no_shard() {
    let mine = || ["default/mine/", "latch/mine/"].map(|text| text.parse::<Scope>().unwrap());
    let mine = || mine().to_vec();
    let scene = Scene::set_with(|config| {
        principal(config, "nobody", Roles::default());
        let worker = Roles {
            acquire: mine(),
            change: mine(),
            read: mine(),
            force_release: mine(),
            ..Roles::default()
        };
        principal(config, "worker", worker);
    })
    .await;
    let channel = scene.channel().await;
    let refused = async || {
        for (caller, key, reason) in [
            ("unknown", "mine/1", Reason::Unauthenticated),
            ("nobody", "mine/1", Reason::NotAllowed),
            ("worker", "yours/1", Reason::NotAllowed),
        ] {
            let refused = refusals(&channel, caller, key).await;
            assert_eq!(refused.len(), CALLS, "{caller}");
            for (call, status) in refused {
                let error = Error::from_status(&status);
                assert_eq!(error.reason, reason, "{caller}: {call}");
                assert!(!error.message.contains(key), "{}", error.message);
            }
        }
    };
    scene.reaches_no_shard(refused).await;
    let before = scene.script_calls().await;
    let refused = refusals(&channel, "worker", "mine/1").await;
    let mut denied = vec!["list", "list_accounts", "delete_account", "accept_account"];
    denied.extend(TOPOLOGY);
    assert_eq!(not_allowed(&refused), denied);
    assert!(scene.script_calls().await > before);
}

#[tokio::test]
async fn each_role_allows_its_calls() {
    let all = || vec![Scope::All];
    let scene = Scene::set_with(|config| {
        let roles = Roles {
            read: all(),
            ..Roles::default()
        };
        principal(config, "reader", roles);
        let roles = Roles {
            acquire: all(),
            change: all(),
            ..Roles::default()
        };
        principal(config, "worker", roles);
        let roles = Roles {
            force_release: all(),
            admin: true,
            ..Roles::default()
        };
        principal(config, "operator", roles);
        principal(config, "root", Roles::all());
    })
    .await;
    let channel = scene.channel().await;
    let refused = not_allowed(&refusals(&channel, "reader", "key").await);
    assert_eq!(refused.len(), CALLS - READS.len());
    assert!(READS.iter().all(|name| !refused.contains(name)));
    let refused = not_allowed(&refusals(&channel, "worker", "key").await);
    let mut denied = READS.to_vec();
    denied.splice(7..7, ["delete_account", "accept_account"]);
    denied.extend(TOPOLOGY);
    denied.push("force_release");
    assert_eq!(refused, denied);
    let refused = not_allowed(&refusals(&channel, "operator", "key").await);
    // And it deletes accounts, accepts them, and releases by force.
    assert_eq!(refused.len(), CALLS - TOPOLOGY.len() - 3);
    let refused = not_allowed(&refusals(&channel, "root", "key").await);
    assert!(refused.is_empty(), "{refused:?}");
}

#[tokio::test]
async fn to_change_money_is_not_to_lock() {
    let scopes = |text: &str| vec![text.parse::<Scope>().unwrap()];
    let scene = Scene::set_with(|config| {
        let locker = Roles {
            acquire: scopes("*"),
            ..Roles::default()
        };
        principal(config, "locker", locker);
        let teller = Roles {
            change: scopes("default/yours/"),
            ..Roles::default()
        };
        principal(config, "teller", teller.clone());
        let payer = Roles {
            receive: scopes("default/mine/"),
            ..teller.clone()
        };
        principal(config, "payer", payer);
        let owner = Roles {
            change: scopes("*"),
            ..Roles::default()
        };
        principal(config, "owner", owner);
    })
    .await;
    let channel = scene.channel().await;
    // The transfer goes to mine/other.
    for (caller, key, locks, changes, transfers) in [
        ("locker", "yours/1", true, false, false),
        ("teller", "yours/1", false, true, false),
        ("payer", "yours/1", false, true, true),
        ("payer", "mine/1", false, false, false),
        ("owner", "yours/1", false, true, true),
    ] {
        let refused = not_allowed(&refusals(&channel, caller, key).await);
        let is_allowed = |call| !refused.contains(&call);
        assert_eq!(is_allowed("acquire"), locks, "{caller} {key}");
        for call in [
            "create_account",
            "deposit",
            "deduct",
            "close_account",
            "batch_change",
        ] {
            assert_eq!(is_allowed(call), changes, "{caller} {key} {call}");
        }
        for call in ["transfer", "capture"] {
            assert_eq!(is_allowed(call), transfers, "{caller} {key} {call}");
        }
    }
}

#[tokio::test]
async fn a_principal_creates_no_more_accounts_than_it_may() {
    let scene = Scene::set_with(|config| {
        principal(config, "teller", Roles::all());
        let principal = config.principals.get_mut("teller").unwrap();
        principal.accounts_per_hour = Some(2);
    })
    .await;
    let mut counters = scene.counters().await;
    let mut create = async |name: &str| {
        let account = Account {
            name: name.into(),
            ..Account::default()
        };
        let request = CreateAccountRequest {
            account: Some(account),
            durability: Durability::Memory.into(),
            ..CreateAccountRequest::default()
        };
        counters.create_account(with("teller", request)).await
    };
    // Those of an hour, and the one that comes now.
    for name in ["a", "b", "c"] {
        create(name).await.unwrap();
    }
    let error = Error::from_status(&create("d").await.unwrap_err());
    assert_eq!(error.reason, Reason::RateLimited);
    let after = error.retry_after.unwrap();
    assert!(
        error.is_retryable && after > Duration::from_secs(1500),
        "{after:?}"
    );
    assert!(
        error
            .message
            .contains("principals.teller.accounts_per_hour")
    );
}
