import { useRef } from 'preact/hooks';
import { logout, session } from '../core/api';
import { act } from '../core/dialogs';
import { connection, held, paused, refusal, setPaused } from '../core/live';
import { href, navigate, path, query } from '../core/router';
import { setTheme, theme } from '../core/theme';
import { Button } from './button';
import { Bell, Icon } from './icon';
import { menuOpen } from './menu';

export const TopBar = ({ onHelp }: { onHelp: () => void }) => (
  <header class="top-bar">
    <Button
      class="icon-button menu-button"
      aria-label="Menu"
      aria-expanded={menuOpen.value}
      aria-controls="menu"
      onClick={() => {
        menuOpen.value = !menuOpen.value;
      }}
      {...{ icon: 'menu', size: 16 }}
    />
    <a class="brand" href={href('')} aria-label="Tocsin: overview">
      <Bell />
      <span>Tocsin</span>
    </a>
    <Search />
    <Live />
    <ThemeButton />
    <Button class="icon-button help-button" aria-label="Help: keys" onClick={onHelp}>
      <span aria-hidden="true">?</span>
    </Button>
    <Account />
  </header>
);

/** Leads to the jobs that fit: by id, type, error, arguments. */
function Search() {
  const field = useRef<HTMLInputElement>(null);
  return (
    <form
      class="search"
      onSubmit={(event) => {
        event.preventDefault();
        const text = field.current?.value.trim() ?? '';
        navigate(isId(text) ? href(`jobs/${text}`) : href('jobs', { q: text }));
        field.current?.blur();
      }}
    >
      <Icon name="search" />
      <input
        id="search"
        ref={field}
        type="search"
        aria-label="Search jobs"
        placeholder="Search jobs: id, type, error, argument"
        defaultValue={path.value === 'jobs' ? query('q') : ''}
        autocomplete="off"
      />
      <span class="key" aria-hidden="true">
        /
      </span>
    </form>
  );
}

const isId = (text: string): boolean => /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(text);

const CLASSES = { off: '', connecting: 'connecting', live: 'on', lost: 'lost' } as const;
const STATES = { off: 'Not live', connecting: 'Connecting', live: 'Live', lost: 'Reconnecting' } as const;

/** Whether what is shown is up to date, and the button that holds it still. */
function Live() {
  const state = connection.value;
  const isPaused = paused.value;
  const text = isPaused ? `Paused${held.value > 0 ? `, ${held.value} held` : ''}` : STATES[state];
  return (
    <Button
      class={`live ${isPaused ? 'paused' : CLASSES[state]}`}
      aria-label={`Live updates: ${text}. ${isPaused ? 'Resume' : 'Pause'}`}
      title={refusal.value || `${text} (press . to ${isPaused ? 'resume' : 'pause'})`}
      onClick={() => setPaused(!isPaused)}
    >
      <i aria-hidden="true" />
      <span>{text}</span>
      <Icon name={isPaused ? 'play' : 'pause'} size={12} />
    </Button>
  );
}

const NEXT = { auto: 'light', light: 'dark', dark: 'auto' } as const;
const THEME_ICONS = { auto: 'auto', light: 'sun', dark: 'moon' } as const;

function ThemeButton() {
  const chosen = theme.value;
  return (
    <Button
      class="icon-button"
      aria-label={`Theme: ${chosen}. Change to ${NEXT[chosen]}`}
      title={`Theme: ${chosen}`}
      onClick={() => setTheme(NEXT[chosen])}
      {...{ icon: THEME_ICONS[chosen], size: 16 }}
    />
  );
}

function Account() {
  const { value } = session;
  if (!value || value.open) return null;
  return (
    <span class="account">
      <span title={value.scopes.join(' ')}>{value.name ?? value.role}</span>
      <Button class="icon-button" icon="leave" size={16} aria-label="Sign out" onClick={() => act(logout)} />
    </span>
  );
}
