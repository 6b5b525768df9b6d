/** What the deployment goes by, and what can be set of it here. */
import { openTab, PageHead, Tabs } from '../../components/page';
import { Configuration, Keys } from './configuration';
import { Deployment } from './deployment';
import { Pools } from './pools';
import { RetryCalculator } from './retry';
import { Schemas } from './schemas';
import { ThisBrowser } from './this-browser';
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
