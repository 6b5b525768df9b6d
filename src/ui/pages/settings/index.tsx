/** What the deployment goes by, and what can be set of it here. */

import { Facts, Loaded, openTab, PageHead, Section, Tabs } from '../../components/page';
import { Badge, Button, Foreign, Words } from '../../components/text';
import { logout, session } from '../../core/api';
import { act } from '../../core/dialogs';
import { connection, held, paused, setPaused } from '../../core/live';
import { setTheme, type Theme, theme } from '../../core/theme';
import { Configuration, Keys } from './configuration';
import { Deployment } from './deployment';
import { Pools } from './pools';
import { Schemas } from './schemas';
import './page.css';
import type { RetryPreview } from '../../../contract/system';
import { Check, errorAt, Field, SelectField } from '../../components/form';
import { JsonSection } from '../../components/json';
import { named } from '../../components/list';
import { RetryCurve } from '../../components/retry-curve';
import { api, useResource } from '../../core/api';
import { query, setQuery } from '../../core/router';

const PRESETS = ['ojs', 'zzz', 'chasqui', 'zizq', 'sidekiq'];
const STRATEGIES = ['exponential', 'linear', 'polynomial', 'constant'];

const numberOf = (text: string): unknown => (Number.isNaN(Number(text)) ? text : Number(text));

/** A bare number is in seconds. */
const durationOf = (text: string): unknown => (/^[\d.]+$/.test(text) ? `${text}s` : text);

/** The members of the URL, with the member of the policy that each is. */
const MEMBERS: readonly (readonly [name: string, member: string, read: (text: string) => unknown])[] = [
  ['preset', 'preset', String],
  ['strategy', 'backoff_strategy', String],
  ['base', 'initial_interval', durationOf],
  ['factor', 'backoff_coefficient', numberOf],
  ['max', 'max_interval', (text) => (text === 'none' ? null : durationOf(text))],
  ['jitter', 'jitter', (text) => text === 'on'],
];

function RetryCalculator() {
  const policy = Object.fromEntries(
    MEMBERS.flatMap(([name, member, read]) => (query(name) === '' ? [] : [[member, read(query(name))]])),
  );
  const asked = numberOf(query('attempts') || '10');
  const preview = useResource(
    (signal) => api.post<RetryPreview>('admin/retry/preview', { policy, attempts: asked }, { signal }),
    [JSON.stringify(policy), asked],
  );
  const field = (name: string, label: string, placeholder: string, hint: string, member: string) => (
    <Field label={label} hint={hint} error={errorAt(preview.error, member)}>
      <input
        value={query(name)}
        placeholder={placeholder}
        autocomplete="off"
        spellcheck={false}
        onInput={({ currentTarget }) => setQuery({ [name]: currentTarget.value.trim() }, { replace: true })}
      />
    </Field>
  );
  const choice = (name: string, label: string, all: string, options: readonly string[]) => (
    <SelectField
      label={label}
      value={query(name)}
      onChange={(value) => setQuery({ [name]: value })}
      options={{ '': all, ...named(options) }}
    />
  );
  return (
    <div class="calculator">
      <form class="card" onSubmit={(event) => event.preventDefault()}>
        {choice('preset', 'Begins with', 'Default of the deployment', PRESETS)}
        {choice('strategy', 'Strategy', 'Unchanged', STRATEGIES)}
        {field('base', 'First delay', '1s', 'A duration: 500ms, 15s, 1m', 'retry.initial_interval')}
        {field('factor', 'Factor', '2', 'Base of exponential, exponent of polynomial', 'retry.backoff_coefficient')}
        {field('max', 'Maximum delay', '5m', 'A duration, or none', 'retry.max_interval')}
        {choice('jitter', 'Jitter', 'Unchanged', ['on', 'off'])}
        {field('attempts', 'Failures shown', '10', '1 to 100', 'attempts')}
      </form>
      <div>
        <Loaded of={preview}>
          {({ delays, effective }) => (
            <>
              <RetryCurve delays={delays} />
              <JsonSection title="The policy" value={effective} open={1} />
            </>
          )}
        </Loaded>
      </div>
    </div>
  );
}

const PARTS = [
  { id: 'configuration', label: 'Configuration', show: Configuration },
  { id: 'deployment', label: 'Deployment', show: Deployment },
  { id: 'keys', label: 'Keys', show: Keys },
  { id: 'schemas', label: 'Schemas', show: Schemas },
  { id: 'pools', label: 'Pools', show: Pools },
  { id: 'retry', label: 'Retry curve', show: RetryCalculator },
  { id: 'browser', label: 'This browser', show: ThisBrowser },
];

export default function SettingsPage() {
  const open = openTab(PARTS);
  const Part = PARTS.find(({ id }) => id === open)?.show ?? Configuration;
  return (
    <div class="settings-page">
      <PageHead title="Settings" />
      <Tabs tabs={PARTS} />
      <Part />
    </div>
  );
}

const THEMES: Readonly<Record<Theme, string>> = { auto: 'Same as system', light: 'Light', dark: 'Dark' };

function ThisBrowser() {
  const who = session.value;
  return (
    <>
      <Section
        title="Signed in as"
        actions={who && !who.open && <Button label="Sign out" onClick={() => act(logout)} />}
      >
        <div class="card">
          <Facts
            of={[
              ['Key', who?.open ? 'no key required' : who?.name ? <Foreign>{who.name}</Foreign> : 'without a name'],
              ['Role', <Badge text={who?.role ?? ''} />],
              ['May', <Words of={who?.scopes ?? []} />],
              ['Shown', who?.redacts ? 'parts of payloads are hidden' : 'full payloads'],
            ]}
          />
        </div>
      </Section>
      <Section title="Colours">
        <fieldset class="choices">
          <legend class="hidden">Colours</legend>
          {(Object.entries(THEMES) as [Theme, string][]).map(([value, label]) => (
            <label key={value}>
              <input type="radio" name="theme" checked={theme.value === value} onChange={() => setTheme(value)} />
              {label}
            </label>
          ))}
        </fieldset>
      </Section>
      <Section title="Live updates">
        <Check class="choices" checked={!paused.value} onChange={(on) => setPaused(!on)}>
          Pages change as things happen <kbd>.</kbd>
        </Check>
        <p class="faint">
          {paused.value ? `Paused, ${held.value} events are held.` : `Connection: ${connection.value}.`} The page does
          not poll, and sleeping queues are not woken.
        </p>
      </Section>
    </>
  );
}
