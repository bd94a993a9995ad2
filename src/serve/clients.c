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

bool clients_admit(struct clients *clients)
{
	struct client *oldest = NULL;
	size_t count = 0;

	pthread_mutex_lock(&clients->lock);
	for (size_t i = 0; i < PLACES; i++) {
		struct client *client = &clients->all[i];

		if (client->fd < 0 || client->leaves)
			continue;
		count++;
		if (!client->asks && (!oldest || client->since < oldest->since))
			oldest = client;
	}
	if (count >= CLIENTS_MAX && oldest) {
		oldest->leaves = true;
		shutdown(oldest->fd, SHUT_RDWR);
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

void clients_note(struct clients *clients, struct client *client, bool asks)
{
	pthread_mutex_lock(&clients->lock);
	client->asks = asks;
	client->since = ++clients->events;
	pthread_mutex_unlock(&clients->lock);
}
