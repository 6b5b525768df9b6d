import { Placeholder } from '../placeholder';

export default function WebhooksPage() {
  return <Placeholder title="Webhooks" icon="webhooks" />;
}
