import { Placeholder } from '../placeholder';

export default function WorkflowPage() {
  return <Placeholder title="Workflow" icon="workflows" />;
}
