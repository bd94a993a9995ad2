/* SPDX-License-Identifier: MIT */
#include "src/serve/clients.h"

#include <stddef.h>
#include <sys/socket.h>

enum { PLACES = CLIENTS_MAX + CLIENTS_LEAVING_MAX };

void clients_begin(struct clients *clients)
{
	*clients = (struct clients){ 0 };
	pthread_mutex_init(&clients->lock, NULL);
	for (size_t i = 0; i < PLACES; i++)
		clients->all[i].fd = -1;
}

void clients_end(struct clients *clients)
{
	pthread_mutex_destroy(&clients->lock);
}

static bool goes_before(const struct client *client, const struct client *other)
{
	return client->state != other->state ? client->state < other->state : client->since < other->since;
}

bool clients_admit(struct clients *clients)
{
	struct client *first = NULL;
	size_t count = 0;

	pthread_mutex_lock(&clients->lock);
	for (size_t i = 0; i < PLACES; i++) {
		struct client *client = &clients->all[i];

		if (client->fd < 0 || client->leaves)
			continue;
		count++;
		if (client->state != CLIENT_ASKS && (!first || goes_before(client, first)))
			first = client;
	}
	if (count >= CLIENTS_MAX && first) {
		first->leaves = true;
		shutdown(first->fd, SHUT_RDWR);
		count--;
	}
	pthread_mutex_unlock(&clients->lock);
	return count < CLIENTS_MAX;
}

struct client *clients_add(struct clients *clients, int fd)
{
	struct client *client = NULL;

	pthread_mutex_lock(&clients->lock);
	for (size_t i = 0; i < PLACES && !client; i++)
		if (clients->all[i].fd < 0)
			client = &clients->all[i];
	if (client)
		*client = (struct client){ .fd = fd, .since = ++clients->events };
	pthread_mutex_unlock(&clients->lock);
	return client;
}

void clients_remove(struct clients *clients, struct client *client)
{
	pthread_mutex_lock(&clients->lock);
	client->fd = -1;
	pthread_mutex_unlock(&clients->lock);
}

void clients_note(struct clients *clients, struct client *client, enum client_state state)
{
	pthread_mutex_lock(&clients->lock);
	client->state = state;
	client->since = ++clients->events;
	pthread_mutex_unlock(&clients->lock);
}
