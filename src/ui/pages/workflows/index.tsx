import { Placeholder } from '../placeholder';

export default function WorkflowsPage() {
  return <Placeholder title="Workflows" icon="workflows" />;
}
