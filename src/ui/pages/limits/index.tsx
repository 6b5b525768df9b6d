import { Placeholder } from '../placeholder';

export default function LimitsPage() {
  return <Placeholder title="Limits" icon="limits" />;
}
