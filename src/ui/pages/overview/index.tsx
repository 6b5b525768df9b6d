import { Placeholder } from '../placeholder';

export default function OverviewPage() {
  return <Placeholder title="Overview" icon="overview" />;
}
