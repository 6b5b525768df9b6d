/** What the deployment goes by, and what can be set of it here. */

import { Badge } from '../../components/badge';
import { Facts, openTab, PageHead, Section, Tabs } from '../../components/page';
import { Button, Foreign, Words } from '../../components/text';
import { act } from '../../core/dialogs';
import { connection, held, paused, setPaused } from '../../core/live';
import { logout, session } from '../../core/session';
import { setTheme, type Theme, theme } from '../../core/theme';
import { Configuration, Keys } from './configuration';
import { Deployment } from './deployment';
import { Pools } from './pools';
import { RetryCalculator } from './retry';
import { Schemas } from './schemas';
import './page.css';

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

const THEMES: readonly (readonly [Theme, string])[] = [
  ['auto', 'Same as system'],
  ['light', 'Light'],
  ['dark', 'Dark'],
];

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
          {THEMES.map(([value, label]) => (
            <label key={value}>
              <input type="radio" name="theme" checked={theme.value === value} onChange={() => setTheme(value)} />
              {label}
            </label>
          ))}
        </fieldset>
      </Section>
      <Section title="Live updates">
        <label class="choices">
          <input
            type="checkbox"
            checked={!paused.value}
            onChange={({ currentTarget }) => setPaused(!currentTarget.checked)}
          />
          Pages change as things happen <kbd>.</kbd>
        </label>
        <p class="faint">
          {paused.value ? `Paused, ${held.value} events are held.` : `Connection: ${connection.value}.`} The page does
          not poll, and sleeping queues are not woken.
        </p>
      </Section>
    </>
  );
}
