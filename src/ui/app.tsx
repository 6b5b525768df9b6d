/** The frame around every page: menu, search, connection, and what lies over all. */
import { useEffect, useRef, useState } from 'preact/hooks';
import { Lazy } from './components/lazy';
import { Menu } from './components/menu';
import { Questions, Toasts } from './components/overlays';
import { Empty, Skeleton } from './components/state';
import { TopBar } from './components/top-bar';
import { can, loadSession, needsLogin, session } from './core/api';
import { failed } from './core/dialogs';
import { useKeys } from './core/keyboard';
import { paused, setPaused } from './core/live';
import { href, navigate, path } from './core/router';
import { PAGES, pageOf, scopeOf } from './pages/table';

export function App() {
  const [help, setHelp] = useState(false);
  useEffect(() => {
    loadSession().catch(failed);
  }, []);
  useKeys('Everywhere', {
    '?': { label: 'This help', run: () => setHelp(true) },
    '/': { label: 'Search', run: () => document.querySelector<HTMLInputElement>('#search')?.focus() },
    '.': {
      label: paused.value ? 'Resume live updates' : 'Pause live updates',
      run: () => setPaused(!paused.value),
    },
    Escape: { label: 'Back', run: stepBack, always: true },
  });
  useKeys(
    'Go to',
    Object.fromEntries(
      PAGES.filter((page) => page.key && can(scopeOf(page))).map((page) => [
        `g ${page.key}`,
        { label: page.title, run: () => navigate(href(page.path)) },
      ]),
    ),
  );
  if (needsLogin.value) return <Lazy load={loadLogin} />;
  return (
    <>
      <a class="skip" href="#main">
        Skip to content
      </a>
      <TopBar onHelp={() => setHelp(true)} />
      <Menu />
      <main id="main" tabIndex={-1}>
        {session.value && <Outlet />}
      </main>
      <Toasts />
      <Questions />
      {help && <Lazy load={loadHelp} onClose={() => setHelp(false)} />}
    </>
  );
}

const loadLogin = () => import('./components/login');
const loadHelp = () => import('./components/help');

/** Out of a field; else one step up: from a job to the jobs. */
function stepBack(): void {
  const { activeElement } = document;
  if (activeElement instanceof HTMLElement && activeElement.matches('input,textarea,select')) {
    activeElement.blur();
    return;
  }
  const parts = path.value.split('/');
  if (parts.length > 1) navigate(href(parts.slice(0, -1).join('/')));
}

function Outlet() {
  const found = pageOf(path.value);
  const first = useRef(true);
  useEffect(() => {
    document.title = `${found?.page.title ?? 'Not found'} · Tocsin`;
    // What was loaded first begins at its top by itself.
    if (!first.current) document.querySelector<HTMLElement>('#main')?.focus({ preventScroll: true });
    first.current = false;
  }, [path.value]);
  if (!found) {
    return (
      <Empty icon="search" title="Page not found">
        <a href={href('')}>To the overview</a>
      </Empty>
    );
  }
  const { page, params } = found;
  if (!can(scopeOf(page))) {
    return (
      <Empty icon="settings" title="This key may not see this page">
        It needs the scope <code>{scopeOf(page)}</code>.
      </Empty>
    );
  }
  return <Lazy key={path.value} load={page.load} params={params} waiting={<Skeleton />} />;
}
