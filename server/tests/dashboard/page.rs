//! The page, in Chromium.
//!
//! With `RINGFENCE_TEST_PICTURES=1`, pictures of it are in `CARGO_TARGET_TMPDIR`, to be looked at.

use std::{env, path::Path};

use ringfence_api::v1::ReleaseRequest;
use ringfence_client::{Client, Guard, NewShard, Reshape};
use ringfence_server::Roles;
use ringfence_test_support::{
    Servers,
    browser::{Browser, Key},
};
use tokio::task::JoinSet;

use super::{LEASE, TOKEN};
use crate::{
    access::{principal, with},
    accounts,
    scene::{Scene, ask},
};

/// Markup, if the page took texts for it.
const KEY: &str = "<img src=x onerror=alert(1)>";
const HOLDER: &str = "<b>nightly</b>";

fn element(id: &str) -> String {
    format!("document.getElementById('{id}')")
}

/// Takes a picture of the whole page, if pictures are asked for.
async fn pictured(browser: &mut Browser, name: &str) {
    if env::var_os("RINGFENCE_TEST_PICTURES").is_some() {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("dashboard-{name}.png"));
        browser.picture(&path).await;
    }
}

/// Opens the dashboard and signs in, after a wrong token.
async fn sign_in(browser: &mut Browser, scene: &Scene) {
    let url = format!("http://{}/dashboard/", scene.monitor);
    browser.open(&url).await;
    browser.until("document.activeElement.id == 'token'").await;
    browser.type_text("wrong").await;
    browser.press(Key::Enter).await;
    let refused = "document.getElementById('sign-in-error').textContent.includes('not known')";
    browser.until(refused).await;
    browser.type_text(TOKEN).await;
    browser.press(Key::Enter).await;
    browser
        .until("document.getElementById('connection').dataset.state == 'live'")
        .await;
}

/// Releases `held` by force, from its row, and confirms it.
async fn release_by_keyboard(browser: &mut Browser, scene: &Scene, held: &Guard) {
    browser
        .tab_to("document.querySelector('#locks button')")
        .await;
    browser.press(Key::Enter).await;
    let shown = format!(
        "document.getElementById('lock').innerText.includes('{}')",
        held.token().get()
    );
    browser.until(&shown).await;
    browser.tab_to(&element("ask-release")).await;
    browser.press(Key::Enter).await;
    browser.until("document.activeElement.id == 'reason'").await;
    let found = scene.other.lock(KEY).inspect().await.unwrap();
    let holder = found
        .holder
        .expect("nothing is released before the confirmation");
    assert_eq!(holder.label.to_string(), HOLDER);
    browser.type_text("its host is dead").await;
    browser.press(Key::Enter).await;
    browser
        .until(
            "document.getElementById('lock-note').innerText.includes('Released: <b>nightly</b>')",
        )
        .await;
}

#[tokio::test]
async fn the_page_shows_a_lock_come_and_go_a_resize_and_a_dead_shard() {
    let set_up = |config: &mut _| principal(config, TOKEN, Roles::all());
    let (mut scene, mut browser) = tokio::join!(Scene::set_with(set_up), Browser::start());
    sign_in(&mut browser, &scene).await;
    browser
        .until("document.querySelectorAll('.state[data-is=ready]').length == 2")
        .await;

    let lock = scene.other.lock(KEY).lease(LEASE).label(HOLDER);
    let held = lock.acquire().await.unwrap();
    let row = "document.querySelector('#locks button')";
    browser
        .until(&format!("{row}.innerText.includes({KEY:?})"))
        .await;
    let markup = browser.value("document.querySelectorAll('#locks img, #locks b').length");
    assert_eq!(markup.await, 0);
    // Of another process: waiters of the holder's own process do not wait at the shard.
    let mut locks = scene.locks().await;
    let asked = with(TOKEN, ask(KEY, 30_000, None));
    let mut waiters = JoinSet::new();
    waiters.spawn(async move { locks.acquire(asked).await });
    let hot = "document.querySelector('#hot button').innerText";
    let waits = format!("{hot}.includes({KEY:?}) && {hot}.includes('1 waits')");
    browser.until(&waits).await;
    release_by_keyboard(&mut browser, &scene, &held).await;
    held.lost().await;
    let next = waiters.join_next().await.unwrap().unwrap().unwrap();
    let handle = next.into_inner().handle;
    let release = with(TOKEN, ReleaseRequest { handle });
    scene.locks().await.release(release).await.unwrap();
    browser.until("document.activeElement.id == 'close'").await;
    browser.press(Key::Enter).await;
    browser
        .until("document.querySelectorAll('#locks li, #hot li').length == 0")
        .await;

    let new = Servers::spawn(1).await;
    let added = Reshape::new().add_shard(NewShard::redis(new.urls()[0].clone()));
    let resize = scene.other.ring().reshape(added).await.unwrap();
    browser
        .until("document.getElementById('notices').innerText.includes('resize is under way')")
        .await;
    pictured(&mut browser, "resize").await;
    assert!(resize.run().await.unwrap().reached);
    browser
        .until("document.getElementById('notices').children.length == 0")
        .await;
    let shares = "[...document.querySelectorAll('.shards .bar')].filter((bar) => bar.innerText.includes('33.3 %, fair 33.3 %')).length == 3";
    browser.until(shares).await;

    scene.kill_servers();
    browser
        .until("document.getElementById('notices').innerText.includes('Shard a is down')")
        .await;
    let own = browser.value("performance.getEntriesByType('resource').every(({ name }) => name.startsWith(location.origin))");
    assert_eq!(own.await, true, "the page loads only from its coordinator");
}

/// A page without sign-in, and `count` locks that are held through its coordinator, one of them with long names.
async fn busy(scene: &Scene, browser: &mut Browser, count: usize) -> Vec<Guard> {
    let url = format!("http://{}/dashboard/", scene.monitor);
    browser.open(&url).await;
    browser
        .until("document.querySelectorAll('.state[data-is=ready]').length == 2")
        .await;
    let caller = Client::builder().coordinators(&*scene.url);
    let caller = caller.build().await.unwrap();
    let mut held = Vec::new();
    for index in 1..count {
        let lock = caller.lock(format!("order/{index}"));
        held.push(lock.acquire().await.unwrap());
    }
    let long = caller.lock("needle".repeat(40));
    let long = long.label(&"a-host-with-a-long-name.".repeat(5));
    held.push(long.acquire().await.unwrap());
    held
}

#[tokio::test]
async fn the_page_finds_a_lock_and_shows_loads_and_a_counter() {
    const HELD: usize = 30;
    let (scene, mut browser) = tokio::join!(Scene::set(), Browser::start());
    let counters = scene.other.counters();
    let coins = counters.create("coins/42", accounts::TERMS, 3);
    let gift = counters.request("gift").unwrap();
    let deposit = accounts::amount(1234);
    coins.await.unwrap().deposit(&gift, deposit).await.unwrap();
    let _held = busy(&scene, &mut browser, HELD).await;

    let rows = "document.querySelectorAll('#locks li').length";
    browser.until(&format!("{rows} == {HELD}")).await;
    browser.tab_to(&element("search")).await;
    browser.type_text("NEEDLE").await;
    browser.until(&format!("{rows} == 1")).await;
    let note = format!("{}.innerText", element("locks-note"));
    let counts = format!("{note} == '{HELD} locks are held; matching: 1, shown: 1.'");
    browser.until(&counts).await;

    // All acquisitions went through this coordinator, to both shards.
    let loads = "[...document.querySelectorAll('.shards li')].map((row) => row.querySelectorAll('.bar')[1])";
    let percents = format!(
        "{loads}.map((bar) => parseFloat(bar.querySelector('p').lastElementChild.innerText))"
    );
    let all = format!("Math.abs({percents}.reduce((sum, part) => sum + part) - 100) < 0.2");
    browser.until(&all).await;
    let filled =
        format!("{loads}.every((bar) => parseFloat(bar.querySelector('i').style.width) > 0)");
    browser.until(&filled).await;
    let since = format!("{}.innerText", element("since"));
    let since =
        format!("{since}.endsWith(' s since this page was opened') || {since} == 'last minute'");
    browser.until(&since).await;

    browser.tab_to(&element("account")).await;
    browser.type_text("coins/42").await;
    browser.press(Key::Enter).await;
    let note = format!("{}.innerText", element("counter-note"));
    let balance = "coins/42: 1,234 available, 0 set aside, in 3 segments.";
    browser
        .until(&format!("{note}.startsWith('{balance}')"))
        .await;
    let sum = "[...document.querySelectorAll('#segments .bar p')].map((bar) => Number(bar.lastElementChild.innerText.replace(',', ''))).reduce((sum, part) => sum + part)";
    browser.until(&format!("{sum} == 1234")).await;
    browser.type_text("x").await;
    browser.press(Key::Enter).await;
    browser
        .until(&format!(
            "{note}.includes('coins/42x') && document.querySelectorAll('#segments li').length == 0"
        ))
        .await;

    let accounts = format!("{}.innerText", element("accounts-note"));
    browser.tab_to(&element("prefix")).await;
    browser.press(Key::Enter).await;
    // Of those in doubt.
    browser.until(&format!("{accounts} == 'None.'")).await;
    let all = format!("({}.value = 'all') == 'all'", element("condition"));
    browser.until(&all).await;
    browser.press(Key::Enter).await;
    let one = format!("{accounts} == '1 account; shown: 1.'");
    browser.until(&one).await;
    let row = "document.querySelector('#accounts button')";
    let shown = format!("{row}.innerText.replace(/\\s+/g, ' ') == 'coins/42 3 segments 1,234'");
    browser.until(&shown).await;
    browser.tab_to(row).await;
    browser.press(Key::Enter).await;
    browser
        .until(&format!("{note}.startsWith('{balance}')"))
        .await;
}

/// The texts and their grounds, with the smallest ratio of contrast that readers with weak eyes need (WCAG 2.2, 1.4.3).
const CONTRASTS: &str = r"
    (() => {
      const style = getComputedStyle(document.documentElement);
      const light = (name) => {
        const hex = style.getPropertyValue(name).trim().slice(1).replace(/^(.)(.)(.)$/, '$1$1$2$2$3$3');
        const [r, g, b] = [0, 2, 4].map((at) => parseInt(hex.slice(at, at + 2), 16) / 255)
          .map((part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4));
        return 0.2126 * r + 0.7152 * g + 0.0722 * b + 0.05;
      };
      const inks = ['--ink', '--muted', '--accent', '--danger', '--warn', '--ok'];
      const pairs = inks.flatMap((ink) => [[ink, '--card'], [ink, '--page']]);
      return [...pairs, ['--on-accent', '--accent'], ['--card', '--danger']]
        .map(([ink, ground]) => [ink, ground, light(ink), light(ground)])
        .filter(([, , one, two]) => Math.max(one, two) / Math.min(one, two) < 4.5)
        .map(([ink, ground]) => `${ink} on ${ground}`).join();
    })()";

/// What reaches beyond the right edge of the screen or of the open dialog, and the captions of bars that break.
const MISFITS: &str = r"
    (() => {
      const misfits = [...document.querySelectorAll('body *')]
        .filter((node) => node.checkVisibility() && !node.closest('.skip') && node.getBoundingClientRect().right > screen.width + 0.5)
        .map((node) => node.id || node.className || node.tagName);
      if (document.scrollingElement.scrollWidth > screen.width) misfits.push('the page');
      const dialog = document.querySelector('dialog[open]');
      if (dialog && dialog.scrollWidth > dialog.clientWidth) misfits.push('the dialog');
      const captions = [...document.querySelectorAll('.shards .bar p')].filter((caption) => caption.offsetHeight > 30);
      return [...misfits, ...captions.map((caption) => caption.innerText)].join();
    })()";

#[tokio::test]
async fn the_page_fits_a_phone_and_is_readable_in_light_and_dark() {
    let (scene, mut browser) = tokio::join!(Scene::set(), Browser::start());
    browser.resize(1280, 900, false).await;
    let _held = busy(&scene, &mut browser, 5).await;
    browser
        .until("document.querySelectorAll('#locks li').length == 5")
        .await;
    for (scheme, ground) in [("light", "rgb(246, 245, 241)"), ("dark", "rgb(16, 20, 24)")] {
        browser.prefer("prefers-color-scheme", scheme).await;
        let shown = format!("getComputedStyle(document.body).backgroundColor == '{ground}'");
        browser.until(&shown).await;
        assert_eq!(browser.value(CONTRASTS).await, "", "{scheme}");
        assert_eq!(browser.value(MISFITS).await, "", "{scheme}");
        pictured(&mut browser, scheme).await;
    }
    for width in [1100, 1080, 760, 390, 320] {
        browser.resize(width, 844, width < 500).await;
        browser.until(&format!("screen.width == {width}")).await;
        assert_eq!(browser.value(MISFITS).await, "", "{width} wide");
        pictured(&mut browser, &format!("{width}")).await;
    }
    browser
        .tab_to("document.querySelector('#locks button')")
        .await;
    browser.press(Key::Enter).await;
    browser
        .until("document.getElementById('lock-holders').children.length == 1")
        .await;
    assert_eq!(browser.value(MISFITS).await, "", "with a lock");
    pictured(&mut browser, "phone-lock").await;
}
