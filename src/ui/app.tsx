/** The frame around every page: menu, search, connection, and what lies over all. */
import type { ComponentType, JSX } from 'preact';
import { useEffect, useErrorBoundary, useRef, useState } from 'preact/hooks';
import { Menu } from './components/menu';
import { Questions, Toasts } from './components/overlays';
import { Empty, Failure, Skeleton } from './components/state';
import { TopBar } from './components/top-bar';
import { asFailure, needsLogin } from './core/api';
import { failed } from './core/dialogs';
import { useKeys } from './core/keyboard';
import { paused, setPaused } from './core/live';
import { href, navigate, path, url } from './core/router';
import { can, loadSession, session } from './core/session';
import { PAGES, type PageProps, pageOf, scopeOf, type TablePage } from './pages/table';

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
  if (needsLogin.value) return <Later load={loadLogin} />;
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
      {help && <Later load={loadHelp} onClose={() => setHelp(false)} />}
    </>
  );
}

const loadLogin = () => import('./components/login').then(({ Login }) => Login);
const loadHelp = () => import('./components/help').then(({ Help }) => Help);

/** A part of the frame that is seldom needed, loaded when it is. */
function Later<P>({ load, ...props }: { load: () => Promise<ComponentType<P>> } & Omit<P, 'load'>) {
  const [found, setFound] = useState<{ component: ComponentType<P> }>();
  useEffect(() => {
    load().then((component) => setFound({ component }), failed);
  }, [load]);
  return found ? <found.component {...(props as unknown as P & JSX.IntrinsicAttributes)} /> : null;
}

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
  return <Lazy key={path.value} page={page} params={params} />;
}

const loaded = new Map<TablePage, ComponentType<PageProps>>();

function Lazy({ page, params }: PageProps & { page: TablePage }) {
  const [, setReady] = useState(false);
  const [missing, setMissing] = useState<unknown>();
  const [broken, reset] = useErrorBoundary();
  useEffect(() => {
    if (loaded.has(page)) return;
    page.load().then(({ default: component }) => {
      loaded.set(page, component);
      setReady(true);
    }, setMissing);
  }, [page]);
  const Component = loaded.get(page);
  if (broken) return <Failure error={asFailure(broken)} retry={reset} />;
  // After a deploy the scripts have other names; the page itself must be reloaded.
  if (missing) return <Failure error={asFailure(missing)} retry={() => window.location.assign(url.value)} />;
  return Component ? <Component params={params} /> : <Skeleton />;
}
