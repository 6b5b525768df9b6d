import { Placeholder } from '../placeholder';

export default function SettingsPage() {
  return <Placeholder title="Settings" icon="settings" />;
}
